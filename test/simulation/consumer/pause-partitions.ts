import type { createPausedPartitions } from '@posthorn/platform/kafka/offsets/paused-partitions.ts';
import { keyOf, type TopicPartition } from '../infrastructure/simulated-kafka.ts';

/** Returns the part of a kafkajs consumer that pauses and resumes partitions. */
export function createPausableConsumer(
  paused: Set<string>,
  onResume: (topicPartition: TopicPartition) => void,
): Parameters<typeof createPausedPartitions>[0] {
  const all = (selection: { topic: string; partitions?: number[] }[]): TopicPartition[] =>
    selection.flatMap(({ topic, partitions = [] }) =>
      partitions.map((partition) => ({ topic, partition })),
    );
  return {
    pause(selection) {
      for (const topicPartition of all(selection)) paused.add(keyOf(topicPartition));
    },
    resume(selection) {
      for (const topicPartition of all(selection)) {
        paused.delete(keyOf(topicPartition));
        onResume(topicPartition);
      }
    },
    seek() {
      throw new Error('No service that is simulated gives records back');
    },
    paused: () =>
      [...paused].map(placeOf).map(({ topic, partition }) => ({ topic, partitions: [partition] })),
  };
}

function placeOf(key: string): TopicPartition {
  const slash = key.lastIndexOf('/');
  return { topic: key.slice(0, slash), partition: Number(key.slice(slash + 1)) };
}
