import { keyOf, type TopicPartition, type TopicPartitions } from '../record-log.ts';

/** Partitions that are not read now: too many records are in flight, or the next record is not due. */
export interface PausedPartitions {
  /** Pauses the partition until `resumeNext` chooses it. */
  pauseForCapacity: (topic: string, partition: number) => void;
  /**
   * Resumes one partition: of those that may be resumed, the one that was paused for capacity longest
   * ago. One only, because kafkajs hands batches over in the order of partitions: if all were resumed,
   * the first of them would take all the capacity each time.
   */
  resumeNext: (mayResume: (partition: TopicPartition) => boolean) => void;
  isPausedForCapacity: (partition: TopicPartition) => boolean;
  isDelayed: (partition: TopicPartition) => boolean;
  /** Pauses the partition for a time, a minute at most; its next record is checked again then. */
  delay: (topic: string, partition: number, delayMs: number) => void;
  /** After a rebalance: every partition is read, and paused again if it must be. */
  resumeAll: () => void;
  /** Resumes nothing from then on. */
  close: () => void;
}

/** A clock that was set forward must not leave a partition paused for hours. */
const MAX_DELAY_MS = 60_000;

/** The part of a Kafka client that pauses need. */
export interface Pausable {
  pause: (selection: TopicPartitions[]) => void;
  resume: (selection: TopicPartitions[]) => void;
  paused: () => TopicPartitions[];
}

export function createPausedPartitions(client: Pausable): PausedPartitions {
  /** In the order in which they were paused. */
  const pausedForCapacity = new Map<string, TopicPartition>();
  const delays = new Map<string, NodeJS.Timeout>();

  /** A partition may be delayed and paused for capacity at once; the later of both ends resumes it. */
  function resumeIfFree(paused: TopicPartition): void {
    const key = keyOf(paused);
    if (pausedForCapacity.has(key) || delays.has(key)) return;
    resume(client, [{ topic: paused.topic, partitions: [paused.partition] }]);
  }

  function clearDelays(): void {
    for (const timer of delays.values()) clearTimeout(timer);
    delays.clear();
  }

  return {
    pauseForCapacity(topic, partition) {
      const key = keyOf({ topic, partition });
      pausedForCapacity.delete(key);
      pausedForCapacity.set(key, { topic, partition });
      pause(client, [{ topic, partitions: [partition] }]);
    },
    resumeNext(mayResume) {
      for (const [key, paused] of pausedForCapacity) {
        if (!mayResume(paused)) continue;
        pausedForCapacity.delete(key);
        resumeIfFree(paused);
        return;
      }
    },
    isPausedForCapacity: (partition) => pausedForCapacity.has(keyOf(partition)),
    isDelayed: (partition) => delays.has(keyOf(partition)),
    delay(topic, partition, delayMs) {
      const key = keyOf({ topic, partition });
      clearTimeout(delays.get(key));
      pause(client, [{ topic, partitions: [partition] }]);
      const end = (): void => {
        delays.delete(key);
        resumeIfFree({ topic, partition });
      };
      delays.set(key, setTimeout(end, Math.min(delayMs, MAX_DELAY_MS)));
    },
    resumeAll() {
      clearDelays();
      pausedForCapacity.clear();
      resume(client, client.paused());
    },
    close: clearDelays,
  };
}

function pause(client: Pausable, selection: TopicPartitions[]): void {
  unlessRestarting(() => {
    client.pause(selection);
  });
}

function resume(client: Pausable, selection: TopicPartitions[]): void {
  unlessRestarting(() => {
    if (selection.length > 0) client.resume(selection);
  });
}

/** kafkajs throws while it restarts a consumer; `resumeAll` follows when that has joined its group. */
function unlessRestarting(act: () => void): void {
  try {
    act();
  } catch (error) {
    const isRestarting = error instanceof Error && error.name === 'KafkaJSNonRetriableError';
    if (!isRestarting) throw error;
  }
}
