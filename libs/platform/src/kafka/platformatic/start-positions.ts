import { byTopic } from '../by-topic.ts';
import { keyOf, type TopicPartition, type TopicPartitions } from '../topic-partition.ts';
import { ListOffsetTimestamps, type Consumer } from '@platformatic/kafka';

/** Partition, by `keyOf`, → the offset that is read next. */
export type Positions = Map<string, number>;

/** Returns where reading starts: at the commits of the group, and at the beginning of partitions without one. */
export async function startPositions(
  consumer: Consumer,
  topicPartitions: readonly TopicPartition[],
): Promise<Positions> {
  if (topicPartitions.length === 0) return new Map();
  const committed = await consumer.listCommittedOffsets({
    topics: byTopic(topicPartitions, partitionsOf),
  });
  const positions: Positions = new Map();
  for (const tp of topicPartitions) {
    const offset = committed.get(tp.topic)?.[tp.partition];
    if (offset !== undefined && offset >= 0n) positions.set(keyOf(tp), Number(offset));
  }
  const fresh = topicPartitions.filter((tp) => !positions.has(keyOf(tp)));
  for (const [key, offset] of await firstOffsets(consumer, fresh)) positions.set(key, offset);
  return positions;
}

/** Returns the first offset that each partition still holds. */
export async function firstOffsets(
  consumer: Consumer,
  topicPartitions: readonly TopicPartition[],
): Promise<Positions> {
  if (topicPartitions.length === 0) return new Map();
  const grouped = byTopic(topicPartitions, partitionsOf);
  const offsets = await consumer.listOffsets({
    topics: grouped.map(({ topic }) => topic),
    partitions: Object.fromEntries(grouped.map(({ topic, partitions }) => [topic, partitions])),
    timestamp: ListOffsetTimestamps.EARLIEST,
  });
  return new Map(
    topicPartitions.map((tp) => [keyOf(tp), Number(offsets.get(tp.topic)?.[tp.partition] ?? 0n)]),
  );
}

function partitionsOf(topic: string, ofTopic: readonly TopicPartition[]): TopicPartitions {
  return { topic, partitions: ofTopic.map(({ partition }) => partition) };
}
