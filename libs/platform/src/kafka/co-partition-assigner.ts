import { assignTogether } from '@posthorn/domain/partition-assignment.ts';
import { AssignerProtocol, type PartitionAssigner } from 'kafkajs';

const VERSION = 0;

/** What kafkajs hands to an assigner; its types leave the method out. */
interface ClusterMetadata {
  findTopicPartitionMetadata: (topic: string) => { partitionId: number }[];
}

/** Gives partition p of every topic of the group to one member. */
export const coPartitionAssigner: PartitionAssigner = ({ cluster }) => ({
  name: 'PosthornTogether',
  version: VERSION,
  // kafkajs awaits the result; the work itself is synchronous.
  assign: ({ members, topics }) => {
    const assignment = assignTogether(
      members.map(({ memberId, memberMetadata }) => ({
        memberId,
        topics: AssignerProtocol.MemberMetadata.decode(memberMetadata)?.topics ?? topics,
      })),
      (topic) => partitionsOf(cluster, topic),
    );
    return Promise.resolve(
      Object.entries(assignment).map(([memberId, partitions]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: VERSION,
          assignment: partitions,
          userData: Buffer.alloc(0),
        }),
      })),
    );
  },
  protocol: ({ topics }) => ({
    name: 'PosthornTogether',
    metadata: AssignerProtocol.MemberMetadata.encode({
      version: VERSION,
      topics,
      userData: Buffer.alloc(0),
    }),
  }),
});

function partitionsOf(cluster: ClusterMetadata, topic: string): number[] {
  return cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId);
}
