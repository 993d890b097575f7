import { keyOf, type TopicPartition, type TopicPartitions } from '../topic-partition.ts';
import type { Pausable } from '../offsets/paused-partitions.ts';

export interface PauseList extends Pausable {
  isPaused: (tp: TopicPartition) => boolean;
}

/** The partitions that are not to be read now. */
export function createPauseList(): PauseList {
  const paused = new Map<string, TopicPartition>();
  return {
    pause(selection) {
      for (const tp of topicPartitionsOf(selection)) paused.set(keyOf(tp), tp);
    },
    resume(selection) {
      for (const tp of topicPartitionsOf(selection)) paused.delete(keyOf(tp));
    },
    paused: () =>
      [...paused.values()].map(({ topic, partition }) => ({ topic, partitions: [partition] })),
    isPaused: (tp) => paused.has(keyOf(tp)),
  };
}

function topicPartitionsOf(selection: readonly TopicPartitions[]): TopicPartition[] {
  return selection.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
}
