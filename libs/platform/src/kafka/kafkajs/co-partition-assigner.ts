import { assignTogether, type GroupMember } from '../consumer/partition-assignment.ts';
import { AssignerProtocol, type PartitionAssigner } from 'kafkajs';

/** The members of a group must agree on these, whichever client they use; version 0 of the consumer protocol. */
export const ASSIGNER_NAME = 'PosthornTogether';
export const ASSIGNER_VERSION = 0;

/** What kafkajs passes to an assigner; its types lack the method. */
interface ClusterMetadata {
  findTopicPartitionMetadata: (topic: string) => { partitionId: number }[];
}

/**
 * Gives partition p of every topic of the group to one member, and to the same process in every
 * group. `instanceId` names this process; each member sends its own when it joins.
 */
export function createCoPartitionAssigner(instanceId: string): PartitionAssigner {
  return ({ cluster }) => ({
    name: ASSIGNER_NAME,
    version: ASSIGNER_VERSION,
    // kafkajs awaits the result; the work itself is synchronous.
    assign: ({ members, topics }) => {
      const assignment = assignTogether(
        members.map(({ memberId, memberMetadata }) => toMember(memberId, memberMetadata, topics)),
        (topic) => partitionsOf(cluster, topic),
      );
      return Promise.resolve(
        Object.entries(assignment).map(([memberId, partitions]) => ({
          memberId,
          memberAssignment: AssignerProtocol.MemberAssignment.encode({
            version: ASSIGNER_VERSION,
            assignment: partitions,
            userData: Buffer.alloc(0),
          }),
        })),
      );
    },
    protocol: ({ topics }) => ({
      name: ASSIGNER_NAME,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: ASSIGNER_VERSION,
        topics,
        userData: Buffer.from(instanceId),
      }),
    }),
  });
}

function toMember(memberId: string, metadata: Buffer, topics: string[]): GroupMember {
  const decoded = AssignerProtocol.MemberMetadata.decode(metadata);
  // kafkajs reads bytes that were not sent as null, which its types leave out.
  const userData = decoded?.userData as Buffer | null | undefined;
  const instanceId = userData?.toString() ?? '';
  return { memberId, topics: decoded?.topics ?? topics, ...(instanceId && { instanceId }) };
}

function partitionsOf(cluster: ClusterMetadata, topic: string): number[] {
  return cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId);
}
