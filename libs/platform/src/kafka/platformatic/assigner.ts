import type { GroupPartitionsAssigner } from '@platformatic/kafka';
import { assignTogether, type GroupMember } from '../partition-assignment.ts';

type Subscription =
  Parameters<GroupPartitionsAssigner>[1] extends Map<string, infer Member> ? Member : never;

/** The same share for each member as co-partition-assigner.ts gives, whichever client leads the group. */
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
