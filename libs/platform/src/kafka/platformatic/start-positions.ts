import { ListOffsetTimestamps, type Consumer } from '@platformatic/kafka';
import type { Place } from '../positions/pauses.ts';

/** The offset that each partition is read from next, by `keyOf` its place. */
export type Positions = Map<string, number>;

export function keyOf({ topic, partition }: Place): string {
  return `${topic}/${partition}`;
}

/** Where the group stands: its commits, and the beginning of what it never committed to. */
export async function startPositions(
  consumer: Consumer,
  places: readonly Place[],
): Promise<Positions> {
  if (places.length === 0) return new Map();
  const committed = await consumer.listCommittedOffsets({ topics: byTopic(places) });
  const positions: Positions = new Map();
  for (const place of places) {
    const offset = committed.get(place.topic)?.[place.partition];
    if (offset !== undefined && offset >= 0n) positions.set(keyOf(place), Number(offset));
  }
  const fresh = places.filter((place) => !positions.has(keyOf(place)));
  for (const [key, offset] of await firstOffsets(consumer, fresh)) positions.set(key, offset);
  return positions;
}

/** The first offset that each partition still holds. */
export async function firstOffsets(
  consumer: Consumer,
  places: readonly Place[],
): Promise<Positions> {
  if (places.length === 0) return new Map();
  const grouped = byTopic(places);
  const offsets = await consumer.listOffsets({
    topics: grouped.map(({ topic }) => topic),
    partitions: Object.fromEntries(grouped.map(({ topic, partitions }) => [topic, partitions])),
    timestamp: ListOffsetTimestamps.EARLIEST,
  });
  return new Map(
    places.map((place) => [
      keyOf(place),
      Number(offsets.get(place.topic)?.[place.partition] ?? 0n),
    ]),
  );
}

function byTopic(places: readonly Place[]): { topic: string; partitions: number[] }[] {
  const grouped = new Map<string, number[]>();
  for (const { topic, partition } of places) {
    grouped.set(topic, [...(grouped.get(topic) ?? []), partition]);
  }
  return [...grouped].map(([topic, partitions]) => ({ topic, partitions }));
}
