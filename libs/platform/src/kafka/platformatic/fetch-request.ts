import type { Consumer, fetchV17 } from '@platformatic/kafka';
import type { PartitionAnswer } from './fetched-records.ts';
import type { Positions } from './start-positions.ts';
import { keyOf, type TopicPartition } from '../topic-partition.ts';

type FetchResponse = fetchV17.FetchResponse;
type FetchTopic = Parameters<Consumer['fetch']>[0]['topics'][number];

const MAX_BYTES = 10_485_760;
const MAX_BYTES_PER_PARTITION = 262_144;

/** Groups partitions by the broker that leads them. Those without a leader are left out. */
export function groupByLeader(
  consumer: Consumer,
  topicPartitions: readonly TopicPartition[],
): Map<number, TopicPartition[]> {
  const grouped = new Map<number, TopicPartition[]>();
  for (const tp of topicPartitions) {
    const leader = topicOf(consumer, tp.topic)?.partitions[tp.partition]?.leader ?? -1;
    if (leader < 0) continue;
    const led = grouped.get(leader);
    if (led) led.push(tp);
    else grouped.set(leader, [tp]);
  }
  return grouped;
}

/** Returns a fetch of these partitions; a broker answers it as soon as it has one record. */
export function fetchRequest(
  consumer: Consumer,
  topicPartitions: readonly TopicPartition[],
  positions: Positions,
): { topics: FetchTopic[]; minBytes: number; maxBytes: number } {
  const topics = new Map<string, FetchTopic>();
  for (const tp of topicPartitions) {
    const topicId = topicOf(consumer, tp.topic)?.id;
    if (topicId === undefined) continue;
    const topic = topics.get(topicId) ?? { topicId, partitions: [] };
    topics.set(topicId, topic);
    topic.partitions.push({
      partition: tp.partition,
      fetchOffset: BigInt(positions.get(keyOf(tp)) ?? 0),
      partitionMaxBytes: MAX_BYTES_PER_PARTITION,
      // Not known: the broker does not check it then.
      currentLeaderEpoch: -1,
      lastFetchedEpoch: -1,
    });
  }
  return { topics: [...topics.values()], minBytes: 1, maxBytes: MAX_BYTES };
}

/** Returns the partitions of all topics together; 0 while the client does not know one of them. */
export function partitionCount(consumer: Consumer): number {
  let sum = 0;
  for (const topic of consumer.topics.current) {
    const count = topicOf(consumer, topic)?.partitionsCount;
    if (count === undefined) return 0;
    sum += count;
  }
  return sum;
}

/** Returns topic id → topic; brokers name topics by id in their responses. */
export function topicNames(consumer: Consumer): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const topic of consumer.topics.current) {
    const id = topicOf(consumer, topic)?.id;
    if (id !== undefined) names.set(id, topic);
  }
  return names;
}

/** Returns each partition of a response with its part of it. */
export function answersIn(
  { responses }: FetchResponse,
  names: ReadonlyMap<string, string>,
): [TopicPartition, PartitionAnswer][] {
  return responses.flatMap(({ topicId, partitions }) => {
    const topic = names.get(topicId);
    if (topic === undefined) return [];
    return partitions.map((answer): [TopicPartition, PartitionAnswer] => [
      { topic, partition: answer.partitionIndex },
      answer,
    ]);
  });
}

/** Returns the response that an error carries: the client rejects the whole fetch when one partition has an error. */
export function responseOf(error: unknown): FetchResponse | null {
  if (!(error instanceof Error) || !('response' in error)) return null;
  return error.response as FetchResponse;
}

function topicOf(consumer: Consumer, topic: string) {
  return consumer.currentMetadata?.topics.get(topic);
}
