import type { createPauses } from '@posthorn/platform/kafka/positions/pauses.ts';
import { keyOf, type Place } from './simulated-kafka.ts';

/** kafkajs as far as pauses need it. */
export function createPausing(
  paused: Set<string>,
  onResume: (place: Place) => void,
): Parameters<typeof createPauses>[0] {
  const all = (selection: { topic: string; partitions?: number[] }[]): Place[] =>
    selection.flatMap(({ topic, partitions = [] }) =>
      partitions.map((partition) => ({ topic, partition })),
    );
  return {
    pause(selection) {
      for (const place of all(selection)) paused.add(keyOf(place));
    },
    resume(selection) {
      for (const place of all(selection)) {
        paused.delete(keyOf(place));
        onResume(place);
      }
    },
    paused: () =>
      [...paused].map(placeOf).map(({ topic, partition }) => ({ topic, partitions: [partition] })),
  };
}

function placeOf(key: string): Place {
  const slash = key.lastIndexOf('/');
  return { topic: key.slice(0, slash), partition: Number(key.slice(slash + 1)) };
}
