import { keyOf, type TopicPartition } from '../topic-partition.ts';

/** Where a partition stood when the broker was asked. */
export interface PartitionReading extends TopicPartition {
  /** The committed offset; -1 before the first commit. */
  position: number;
  /** Records beyond it. */
  lag: number;
  /** True where nothing can move now, see GroupConsumer.isWaiting. */
  isWaiting: boolean;
}

interface Check {
  /** How much of the time since the check before counts, in milliseconds. */
  countedMs: number;
  /** The wall clock. */
  nowMs: number;
}

export interface StallClock {
  /** Adds what a check has read. Returns the partitions that have stalled. */
  add: (readings: readonly PartitionReading[], check: Check) => PartitionReading[];
  /** When the partition of the topic that has waited longest last moved, by the wall clock. */
  movedAtMs: (topic: string, nowMs: number) => number;
  /** The consumer was replaced: every partition gets its whole time again. */
  restart: () => void;
}

interface Standing {
  reading: PartitionReading;
  stillMs: number;
  movedAtMs: number;
}

/** Measures for how long each partition has not moved although it has records to read. */
export function createStallClock(stallMs: number): StallClock {
  let standing = new Map<string, Standing>();
  return {
    add(readings, check) {
      standing = new Map(
        readings.map((reading) => {
          const key = keyOf(reading);
          return [key, next(standing.get(key), reading, check)];
        }),
      );
      return [...standing.values()]
        .filter(({ stillMs }) => stillMs >= stallMs)
        .map(({ reading }) => reading);
    },
    movedAtMs: (topic, nowMs) =>
      Math.min(
        nowMs,
        ...[...standing.values()]
          .filter(({ reading }) => reading.topic === topic)
          .map(({ movedAtMs }) => movedAtMs),
      ),
    restart() {
      for (const each of standing.values()) each.stillMs = 0;
    },
  };
}

function next(
  before: Standing | undefined,
  reading: PartitionReading,
  { countedMs, nowMs }: Check,
): Standing {
  const hasMoved = before?.reading.position !== reading.position;
  if (!before || hasMoved || reading.lag === 0 || reading.isWaiting) {
    return { reading, stillMs: 0, movedAtMs: nowMs };
  }
  return { reading, stillMs: before.stillMs + countedMs, movedAtMs: before.movedAtMs };
}
