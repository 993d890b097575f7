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
  /** Pauses the partition for a time. A long wait is cut at a minute, and its next record is asked again. */
  delay: (topic: string, partition: number, delayMs: number) => void;
  /** After a rebalance: every partition is read, and paused again if it must be. */
  resumeAll: () => void;
  /** Resumes nothing any more. */
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

interface State {
  client: Pausable;
  pausedForCapacity: Map<string, TopicPartition>;
  delays: Map<string, NodeJS.Timeout>;
}

export function createPausedPartitions(client: Pausable): PausedPartitions {
  const state: State = { client, pausedForCapacity: new Map(), delays: new Map() };
  return {
    pauseForCapacity(topic, partition) {
      const key = keyOf({ topic, partition });
      // A Map keeps insertion order: a partition that is paused again goes to the end.
      state.pausedForCapacity.delete(key);
      state.pausedForCapacity.set(key, { topic, partition });
      pause(client, [{ topic, partitions: [partition] }]);
    },
    resumeNext(mayResume) {
      for (const [key, paused] of state.pausedForCapacity) {
        if (!mayResume(paused)) continue;
        state.pausedForCapacity.delete(key);
        resumeIfFree(state, paused);
        return;
      }
    },
    isPausedForCapacity: (partition) => state.pausedForCapacity.has(keyOf(partition)),
    isDelayed: (partition) => state.delays.has(keyOf(partition)),
    delay(topic, partition, delayMs) {
      delay(state, { topic, partition }, delayMs);
    },
    resumeAll() {
      clearDelays(state);
      state.pausedForCapacity.clear();
      resume(client, client.paused());
    },
    close: () => {
      clearDelays(state);
    },
  };
}

function delay(state: State, delayed: TopicPartition, delayMs: number): void {
  const key = keyOf(delayed);
  const { topic, partition } = delayed;
  clearTimeout(state.delays.get(key));
  pause(state.client, [{ topic, partitions: [partition] }]);
  const end = (): void => {
    state.delays.delete(key);
    resumeIfFree(state, delayed);
  };
  state.delays.set(key, setTimeout(end, Math.min(delayMs, MAX_DELAY_MS)));
}

/** A partition may be delayed and paused for capacity at once; the later of both ends resumes it. */
function resumeIfFree({ client, pausedForCapacity, delays }: State, paused: TopicPartition): void {
  const key = keyOf(paused);
  if (pausedForCapacity.has(key) || delays.has(key)) return;
  resume(client, [{ topic: paused.topic, partitions: [paused.partition] }]);
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

function clearDelays({ delays }: State): void {
  for (const timer of delays.values()) clearTimeout(timer);
  delays.clear();
}
