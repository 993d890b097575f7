import type { GroupPartitionsAssigner } from '@platformatic/kafka';
import { assignTogether, type GroupMember } from '../consumer/partition-assignment.ts';

type Subscription =
  Parameters<GroupPartitionsAssigner>[1] extends Map<string, infer Member> ? Member : never;

/** Assigns as co-partition-assigner.ts does, so that either client may lead the group. */
export const assignCoPartitions: GroupPartitionsAssigner = (
  _leader,
  members,
  _topics,
  metadata,
) => {
  const assignment = assignTogether([...members.values()].map(toMember), (topic) => [
    ...Array(metadata.topics.get(topic)?.partitionsCount ?? 0).keys(),
  ]);
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

function toMember({ memberId, topics = [], metadata }: Subscription): GroupMember {
  const instanceId = metadata?.toString() ?? '';
  return { memberId, topics, ...(instanceId && { instanceId }) };
}
