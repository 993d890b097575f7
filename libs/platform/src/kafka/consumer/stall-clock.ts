/** Where a partition stood when the broker was asked. */
export interface Reading {
  topic: string;
  partition: number;
  /** The committed offset; -1 before the first commit. */
  position: number;
  /** Records beyond it. */
  lag: number;
  /** True where nothing can move just now, see Reader.isWaiting. */
  isWaiting: boolean;
}

export interface Look {
  /** How much of the time since the look before counts, in milliseconds. */
  countedMs: number;
  /** The wall clock. */
  nowMs: number;
}

export interface StallClock {
  /** Takes what one look has found; answers the partitions that stood still for too long. */
  look: (readings: readonly Reading[], look: Look) => Reading[];
  /** When the partition of the topic that waits longest last moved, by the wall clock. */
  movedAtMs: (topic: string, nowMs: number) => number;
  /** The consumer began anew: every partition gets its whole time again. */
  restart: () => void;
}

interface Standing {
  reading: Reading;
  stillMs: number;
  movedAtMs: number;
}

/** Measures how long each partition stands still although it has records to read. */
export function createStallClock(stallMs: number): StallClock {
  let standing = new Map<string, Standing>();
  return {
    look(readings, look) {
      standing = new Map(
        readings.map((reading) => {
          const key = `${reading.topic}/${reading.partition}`;
          return [key, stand(standing.get(key), reading, look)];
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

function stand(
  before: Standing | undefined,
  reading: Reading,
  { countedMs, nowMs }: Look,
): Standing {
  const hasMoved = before?.reading.position !== reading.position;
  if (!before || hasMoved || reading.lag === 0 || reading.isWaiting) {
    return { reading, stillMs: 0, movedAtMs: nowMs };
  }
  return { reading, stillMs: before.stillMs + countedMs, movedAtMs: before.movedAtMs };
}
