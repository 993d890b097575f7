import type { GroupPosition } from '../kafka/offsets/group-positions.ts';

/** What a group has not read of one topic. */
export interface TopicBacklog {
  /** Records that are ready. */
  records: number;
  /** When the oldest of them became ready, in milliseconds since 1970; null when there is none. */
  oldestReadyMs: number | null;
  /** Where the group stands: nothing about its oldest record changes while this does not. */
  standing: string;
}

export interface ReadBacklog {
  /** Of all partitions of the topic. */
  positions: readonly GroupPosition[];
  /** Partition → the offset after the last record written before this time. */
  endsBefore: (beforeMs: number) => Promise<ReadonlyMap<number, number>>;
  /** How long after it was written a record is ready, in milliseconds; 0 for at once. */
  readyAfterMs: number;
  /** What was found the last time. */
  before: TopicBacklog | null;
  nowMs: number;
}

/** The search does not tell ages below this apart: a backlog this young alarms nobody. */
const YOUNGEST_MS = 1_000;
/** The search begins here: no topic keeps its records this long. */
const OLDEST_MS = 60 * 86_400_000;
const PRECISION = 1.02;

/** Reads the offsets of the broker only, so it needs no right to read records. */
export async function readBacklog(given: ReadBacklog): Promise<TopicBacklog> {
  const { positions, before } = given;
  const ends = await readyEnds(given);
  const behind = positions.map((position) => ({
    partition: position.partition,
    next: position.endOffset - position.lag,
  }));
  const sizes = behind.map(({ partition, next }) => Math.max(0, (ends.get(partition) ?? 0) - next));
  const records = sizes.reduce((sum, size) => sum + size, 0);
  const standing = behind.map(({ partition, next }) => `${partition}:${next}`).join(' ');
  if (records === 0) return { records, oldestReadyMs: null, standing };
  const isKnown = before?.standing === standing && before.oldestReadyMs !== null;
  const oldestReadyMs = isKnown
    ? before.oldestReadyMs
    : await findOldest(given, new Map(behind.map(({ partition, next }) => [partition, next])));
  return { records, oldestReadyMs, standing };
}

async function readyEnds({
  positions,
  endsBefore,
  readyAfterMs,
  nowMs,
}: ReadBacklog): Promise<ReadonlyMap<number, number>> {
  if (readyAfterMs > 0) return endsBefore(nowMs - readyAfterMs + 1);
  return new Map(positions.map(({ partition, endOffset }) => [partition, endOffset]));
}

/** Halves the span of ages, on a logarithmic scale: eleven questions from a second to two months. */
async function findOldest(
  { endsBefore, readyAfterMs, nowMs }: ReadBacklog,
  nexts: ReadonlyMap<number, number>,
): Promise<number> {
  const isOlder = async (ageMs: number): Promise<boolean> => {
    const ends = await endsBefore(nowMs - readyAfterMs - ageMs);
    return [...nexts].some(([partition, next]) => (ends.get(partition) ?? 0) > next);
  };
  let [youngest, oldest] = [YOUNGEST_MS, OLDEST_MS];
  if (!(await isOlder(youngest))) return nowMs - youngest;
  while (oldest / youngest > PRECISION) {
    const middle = Math.sqrt(youngest * oldest);
    if (await isOlder(middle)) youngest = middle;
    else oldest = middle;
  }
  return nowMs - oldest;
}
