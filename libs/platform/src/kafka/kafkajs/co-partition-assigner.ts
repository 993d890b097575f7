import {
  assignPartitions,
  decodeReport,
  type GroupMember,
} from '../consumer/partition-assignment.ts';
import { TOGETHER, type Sharing } from '../record-log.ts';
import { AssignerProtocol, type Cluster, type PartitionAssigner } from 'kafkajs';

/** The members of a group must agree on these; version 0 of the consumer protocol. */
const ASSIGNER_NAME = 'PosthornTogether';
export const ASSIGNER_VERSION = 0;

interface PartitionMetadata {
  partitionId: number;
}

interface Broker {
  /** Rejects when there is no such topic. */
  metadata: (
    topics: string[],
  ) => Promise<{ topicMetadata: { topic: string; partitionMetadata: PartitionMetadata[] }[] }>;
}

/** What kafkajs passes to an assigner; its types lack the pool. */
interface ClusterMetadata {
  /** Returns none for a topic that this client does not read. */
  findTopicPartitionMetadata: (topic: string) => PartitionMetadata[];
  brokerPool: { findConnectedBroker: () => Promise<Broker> };
}

/** Each member sends its `report` when it joins. The member that leads the group assigns. */
export function createCoPartitionAssigner(
  report: () => Buffer,
  sharing: Sharing = TOGETHER,
): PartitionAssigner {
  return ({ cluster }) => ({
    name: ASSIGNER_NAME,
    version: ASSIGNER_VERSION,
    assign: async ({ members, topics }) => {
      const known = members.map(({ memberId, memberMetadata }) =>
        toMember(memberId, memberMetadata, topics),
      );
      const partitions = await partitionsByTopic(cluster as Cluster & ClusterMetadata, known);
      const assignment = assignPartitions(known, (topic) => partitions.get(topic) ?? [], sharing);
      return Object.entries(assignment).map(([memberId, ofMember]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: ASSIGNER_VERSION,
          assignment: ofMember,
          userData: Buffer.alloc(0),
        }),
      }));
    },
    protocol: ({ topics }) => ({
      name: ASSIGNER_NAME,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: ASSIGNER_VERSION,
        topics,
        userData: report(),
      }),
    }),
  });
}

function toMember(memberId: string, metadata: Buffer, topics: string[]): GroupMember {
  const decoded = AssignerProtocol.MemberMetadata.decode(metadata);
  // kafkajs reads bytes that were not sent as null, which its types leave out.
  const userData = decoded?.userData as Buffer | null | undefined;
  return { memberId, topics: decoded?.topics ?? topics, ...decodeReport(userData) };
}

async function partitionsByTopic(
  cluster: ClusterMetadata,
  members: readonly GroupMember[],
): Promise<Map<string, number[]>> {
  const partitions = new Map<string, number[]>();
  for (const topic of new Set(members.flatMap((member) => member.topics))) {
    const read = cluster.findTopicPartitionMetadata(topic);
    const found = read.length > 0 ? read : await askForPartitions(cluster, topic);
    partitions.set(
      topic,
      found.map(({ partitionId }) => partitionId),
    );
  }
  return partitions;
}

/**
 * During an upgrade another member may read a topic that this one does not. The broker is asked for it
 * alone, because one topic that does not exist would fail the request for all. The answer is not kept:
 * this client must not depend on the topic later.
 */
async function askForPartitions(
  { brokerPool }: ClusterMetadata,
  topic: string,
): Promise<PartitionMetadata[]> {
  try {
    const broker = await brokerPool.findConnectedBroker();
    const { topicMetadata } = await broker.metadata([topic]);
    return topicMetadata.flatMap((each) => each.partitionMetadata);
  } catch (error) {
    // Any other failure fails the join, which is repeated: without an owner nobody would read the topic.
    if (isUnknownTopic(error)) return [];
    throw error;
  }
}

function isUnknownTopic(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION';
}
