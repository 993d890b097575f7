/** Why a partition is not read just now: the window is full, or its head is not due yet. */
export interface Pauses {
  /** Holds the partition back until `letGo` finds it free. */
  holdBack: (topic: string, partition: number) => void;
  /**
   * Lets the free one go that was held back longest. One only: kafkajs hands batches over in the
   * order of partitions, so letting all go would give every room to the first of them.
   */
  letGo: (isFree: (place: Place) => boolean) => void;
  isHeldBack: (place: Place) => boolean;
  isPostponed: (place: Place) => boolean;
  /** Holds the partition back for a time; long waits are cut at a minute, and the head is asked again. */
  pauseFor: (topic: string, partition: number, waitMs: number) => void;
  /** After a rebalance: whatever was paused is read again and judged anew. */
  forgetAll: () => void;
  /** Wakes nothing any more. */
  close: () => void;
}

/** A clock that was set forward must not leave a partition asleep for hours. */
const MAX_WAIT_MS = 60_000;

export interface Place {
  topic: string;
  partition: number;
}

/** The part of a client of Kafka that pauses need. */
export interface Pausable {
  pause: (selection: TopicPartitions[]) => void;
  resume: (selection: TopicPartitions[]) => void;
  paused: () => TopicPartitions[];
}

export interface TopicPartitions {
  topic: string;
  partitions: number[];
}

interface State {
  consumer: Pausable;
  heldBack: Map<string, Place>;
  timers: Map<string, NodeJS.Timeout>;
}

export function createPauses(consumer: Pausable): Pauses {
  const state: State = { consumer, heldBack: new Map(), timers: new Map() };
  return {
    holdBack(topic, partition) {
      const key = keyOf({ topic, partition });
      // A Map keeps insertion order: whoever is held back again goes to the end of the line.
      state.heldBack.delete(key);
      state.heldBack.set(key, { topic, partition });
      pause(consumer, [{ topic, partitions: [partition] }]);
    },
    letGo(isFree) {
      for (const [key, place] of state.heldBack) {
        if (!isFree(place)) continue;
        state.heldBack.delete(key);
        resumeIfFree(state, place);
        return;
      }
    },
    isHeldBack: (place) => state.heldBack.has(keyOf(place)),
    isPostponed: (place) => state.timers.has(keyOf(place)),
    pauseFor(topic, partition, waitMs) {
      pauseFor(state, { topic, partition }, waitMs);
    },
    forgetAll() {
      clearTimers(state);
      state.heldBack.clear();
      resume(consumer, consumer.paused());
    },
    close: () => {
      clearTimers(state);
    },
  };
}

function pauseFor(state: State, place: Place, waitMs: number): void {
  const key = keyOf(place);
  const { topic, partition } = place;
  clearTimeout(state.timers.get(key));
  pause(state.consumer, [{ topic, partitions: [partition] }]);
  const wake = (): void => {
    state.timers.delete(key);
    resumeIfFree(state, place);
  };
  state.timers.set(key, setTimeout(wake, Math.min(waitMs, MAX_WAIT_MS)));
}

/** A partition may be held back and postponed at once; the later of both lets it go. */
function resumeIfFree({ consumer, heldBack, timers }: State, place: Place): void {
  const key = keyOf(place);
  if (heldBack.has(key) || timers.has(key)) return;
  resume(consumer, [{ topic: place.topic, partitions: [place.partition] }]);
}

function pause(consumer: Pausable, selection: TopicPartitions[]): void {
  unlessBetweenLives(() => {
    consumer.pause(selection);
  });
}

function resume(consumer: Pausable, selection: TopicPartitions[]): void {
  unlessBetweenLives(() => {
    if (selection.length > 0) consumer.resume(selection);
  });
}

/** kafkajs throws while it restarts a consumer; its next GROUP_JOIN judges every partition anew. */
function unlessBetweenLives(act: () => void): void {
  try {
    act();
  } catch (error) {
    const isBetween = error instanceof Error && error.name === 'KafkaJSNonRetriableError';
    if (!isBetween) throw error;
  }
}

function clearTimers({ timers }: State): void {
  for (const timer of timers.values()) clearTimeout(timer);
  timers.clear();
}

function keyOf({ topic, partition }: Place): string {
  return `${topic}/${partition}`;
}
