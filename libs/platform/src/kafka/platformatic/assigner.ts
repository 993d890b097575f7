import type { GroupPartitionsAssigner } from '@platformatic/kafka';
import {
  assignPartitions,
  decodeReport,
  type GroupMember,
} from '../consumer/partition-assignment.ts';
import { TOGETHER, type Sharing } from '../record-log.ts';

type Subscription =
  Parameters<GroupPartitionsAssigner>[1] extends Map<string, infer Member> ? Member : never;

/** Assigns as co-partition-assigner.ts does, so that either client may lead the group. */
export function createAssigner(sharing: Sharing = TOGETHER): GroupPartitionsAssigner {
  return (_leader, members, _topics, metadata) => {
    const partitionsOf = (topic: string): number[] => [
      ...Array(metadata.topics.get(topic)?.partitionsCount ?? 0).keys(),
    ];
    const known = [...members.values()].map(toMember);
    const assignment = assignPartitions(known, partitionsOf, sharing);
    return Object.entries(assignment).map(([memberId, partitionsByTopic]) => ({
      memberId,
      assignments: new Map(
        Object.entries(partitionsByTopic).map(([topic, partitions]) => [
          topic,
          { topic, partitions },
        ]),
      ),
    }));
  };
}

function toMember({ memberId, topics = [], metadata }: Subscription): GroupMember {
  return { memberId, topics, ...decodeReport(metadata) };
}
