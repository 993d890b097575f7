import { offsetCommitV8, type Consumer } from '@platformatic/kafka';
import { byTopic } from '../by-topic.ts';
import type { Commit } from '../offsets/owned-partitions.ts';

/** One member in one generation of its group. */
export interface Generation {
  memberId: string;
  generationId: number;
}

type CommitTopic = Parameters<typeof offsetCommitV8.api.async>[5][number];

/**
 * Commits for one generation. Rejects when the group has changed; `Consumer.commit` would join again
 * then, and commit partitions that belong to another member by that time. Brokers support version 8
 * from Kafka 2.4 on.
 */
export async function commitInGeneration(
  consumer: Consumer,
  { memberId, generationId }: Generation,
  commits: readonly Commit[],
): Promise<void> {
  const coordinatorId = await consumer.findGroupCoordinator();
  const { brokers } = await consumer.metadata({ topics: [] });
  const broker = brokers.get(coordinatorId);
  if (!broker) throw new Error(`Kafka names no address of the coordinator ${coordinatorId}.`);
  const connection = await consumer.connections.get(broker);
  await offsetCommitV8.api.async(
    connection,
    consumer.groupId,
    generationId,
    memberId,
    null,
    byTopic(commits, offsetsOf),
  );
}

function offsetsOf(topic: string, commits: readonly Commit[]): CommitTopic {
  const partitions = commits.map(({ partition, offset }) => ({
    partitionIndex: partition,
    committedOffset: BigInt(offset),
    committedLeaderEpoch: -1,
    committedMetadata: null,
  }));
  return { name: topic, partitions };
}
