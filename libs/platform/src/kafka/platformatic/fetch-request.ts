import type { Consumer, fetchV17 } from '@platformatic/kafka';
import type { Place } from '../positions/pauses.ts';
import type { PartitionAnswer } from './fetched-records.ts';
import { keyOf, type Positions } from './start-positions.ts';

type FetchResponse = fetchV17.FetchResponse;
type FetchTopic = Parameters<Consumer['fetch']>[0]['topics'][number];

const MAX_BYTES = 10_485_760;
const MAX_BYTES_PER_PARTITION = 262_144;

/** The places by the broker that leads them; those without a leader are left out. */
export function groupByLeader(consumer: Consumer, places: readonly Place[]): Map<number, Place[]> {
  const grouped = new Map<number, Place[]>();
  for (const place of places) {
    const leader = topicOf(consumer, place.topic)?.partitions[place.partition]?.leader ?? -1;
    if (leader < 0) continue;
    const led = grouped.get(leader);
    if (led) led.push(place);
    else grouped.set(leader, [place]);
  }
  return grouped;
}

/** Asks for the records of these places; a broker answers as soon as it has one. */
export function fetchRequest(
  consumer: Consumer,
  places: readonly Place[],
  positions: Positions,
): { topics: FetchTopic[]; minBytes: number; maxBytes: number } {
  const topics = new Map<string, FetchTopic>();
  for (const place of places) {
    const topicId = topicOf(consumer, place.topic)?.id;
    if (topicId === undefined) continue;
    const topic = topics.get(topicId) ?? { topicId, partitions: [] };
    topics.set(topicId, topic);
    topic.partitions.push({
      partition: place.partition,
      fetchOffset: BigInt(positions.get(keyOf(place)) ?? 0),
      partitionMaxBytes: MAX_BYTES_PER_PARTITION,
      // Not known: the broker does not compare it then.
      currentLeaderEpoch: -1,
      lastFetchedEpoch: -1,
    });
  }
  return { topics: [...topics.values()], minBytes: 1, maxBytes: MAX_BYTES };
}

/** Of all topics together; 0 while the client does not know one of them. */
export function partitionCount(consumer: Consumer): number {
  let sum = 0;
  for (const topic of consumer.topics.current) {
    const count = topicOf(consumer, topic)?.partitionsCount;
    if (count === undefined) return 0;
    sum += count;
  }
  return sum;
}

/** Topic id → topic, as brokers name topics in their answers. */
export function topicNames(consumer: Consumer): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const topic of consumer.topics.current) {
    const id = topicOf(consumer, topic)?.id;
    if (id !== undefined) names.set(id, topic);
  }
  return names;
}

/** Each partition that a broker answered for, with its answer. */
export function answersIn(
  { responses }: FetchResponse,
  names: ReadonlyMap<string, string>,
): [Place, PartitionAnswer][] {
  return responses.flatMap(({ topicId, partitions }) => {
    const topic = names.get(topicId);
    if (topic === undefined) return [];
    return partitions.map((answer): [Place, PartitionAnswer] => [
      { topic, partition: answer.partitionIndex },
      answer,
    ]);
  });
}

/** What came with a refusal: where one partition is refused, the client rejects the whole fetch. */
export function responseOf(error: unknown): FetchResponse | null {
  if (!(error instanceof Error) || !('response' in error)) return null;
  return error.response as FetchResponse;
}

function topicOf(consumer: Consumer, topic: string) {
  return consumer.currentMetadata?.topics.get(topic);
}
