import { keyOf, type ReadAgain, type TopicPartition, type TopicPartitions } from '../record-log.ts';

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
  /** Pauses the partition until it may be read again, from `offset` on. */
  readAgain: (place: TopicPartition & { offset: number }, when: ReadAgain) => void;
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
  /** Moves the place where a partition is read. What is fetched while it is paused is not handed over. */
  seek: (place: TopicPartition & { offset: number }) => void;
}

export function createPausedPartitions(client: Pausable): PausedPartitions {
  /** In the order in which they were paused. */
  const pausedForCapacity = new Map<string, TopicPartition>();
  /** A partition may be delayed and paused for capacity at once; the later of both ends resumes it. */
  const resumeIfFree = (paused: TopicPartition): void => {
    if (pausedForCapacity.has(keyOf(paused)) || delays.has(paused)) return;
    resume(client, [{ topic: paused.topic, partitions: [paused.partition] }]);
  };
  const delays = new Delays(client, resumeIfFree);
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
        // The end of its delay resumes it.
        if (delays.has(paused)) continue;
        resumeIfFree(paused);
        return;
      }
    },
    isPausedForCapacity: (partition) => pausedForCapacity.has(keyOf(partition)),
    isDelayed: (partition) => delays.has(partition),
    delay(topic, partition, delayMs) {
      delays.begin({ topic, partition }, delayMs);
    },
    readAgain({ offset, ...paused }, { pauseMs, mayReadOn }) {
      delays.begin(paused, pauseMs, mayReadOn);
      unlessRestarting(() => {
        client.seek({ ...paused, offset });
      });
    },
    resumeAll() {
      delays.clear();
      pausedForCapacity.clear();
      resume(client, client.paused());
    },
    close() {
      delays.clear();
    },
  };
}

/** The partitions that are paused until a timer ends. */
class Delays {
  readonly #client: Pausable;
  readonly #onEnd: (paused: TopicPartition) => void;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(client: Pausable, onEnd: (paused: TopicPartition) => void) {
    this.#client = client;
    this.#onEnd = onEnd;
  }

  has(partition: TopicPartition): boolean {
    return this.#timers.has(keyOf(partition));
  }

  /** In place of one that runs. With `mayEnd` another one follows unless it resolves with true. */
  begin(paused: TopicPartition, delayMs: number, mayEnd?: () => Promise<boolean>): void {
    const key = keyOf(paused);
    clearTimeout(this.#timers.get(key));
    pause(this.#client, [{ topic: paused.topic, partitions: [paused.partition] }]);
    const end = async (): Promise<void> => {
      const mayEndNow = !mayEnd || (await mayEnd().catch(() => false));
      // Another delay, or `clear`, may have come meanwhile.
      if (this.#timers.get(key) !== timer) return;
      if (!mayEndNow) {
        this.begin(paused, delayMs, mayEnd);
        return;
      }
      this.#timers.delete(key);
      this.#onEnd(paused);
    };
    const timer = setTimeout(() => void end(), Math.min(delayMs, MAX_DELAY_MS));
    this.#timers.set(key, timer);
  }

  clear(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
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

/** kafkajs throws while it restarts a consumer; `resumeAll` follows when that has joined its group, and reads what is committed. */
function unlessRestarting(act: () => void): void {
  try {
    act();
  } catch (error) {
    const isRestarting = error instanceof Error && error.name === 'KafkaJSNonRetriableError';
    if (!isRestarting) throw error;
  }
}
