import { keyOf } from './start-positions.ts';
import type { Pausable, Place, TopicPartitions } from '../positions/pauses.ts';

export interface PauseList extends Pausable {
  isPaused: (place: Place) => boolean;
}

/** Which partitions are not to be read just now. */
export function createPauseList(): PauseList {
  const paused = new Map<string, Place>();
  return {
    pause(selection) {
      for (const place of placesOf(selection)) paused.set(keyOf(place), place);
    },
    resume(selection) {
      for (const place of placesOf(selection)) paused.delete(keyOf(place));
    },
    paused: () =>
      [...paused.values()].map(({ topic, partition }) => ({ topic, partitions: [partition] })),
    isPaused: (place) => paused.has(keyOf(place)),
  };
}

function placesOf(selection: readonly TopicPartitions[]): Place[] {
  return selection.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
}
