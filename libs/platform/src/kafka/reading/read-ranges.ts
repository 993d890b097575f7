import type { Admin } from 'kafkajs';

/** Offsets of one partition to read; `end` is excluded. */
export interface OffsetRange {
  partition: number;
  from: number;
  end: number;
}

export interface RangeOptions {
  topic: string;
  /** Leaves out records that are certainly older: milliseconds since 1970. */
  sinceMs?: number | undefined;
  /** Reads only this record. */
  only?: { partition: number; offset: number } | undefined;
}

/** Returns what the topic holds now of what is asked for. Throws when there is no such topic. */
export async function readRanges(
  admin: Admin,
  { topic, sinceMs, only }: RangeOptions,
): Promise<OffsetRange[]> {
  if (!(await admin.listTopics()).includes(topic)) throw new Error(`Kafka has no topic ${topic}.`);
  const whole = (await admin.fetchTopicOffsets(topic)).map(({ partition, low, high }) => ({
    partition,
    from: Number(low),
    end: Number(high),
  }));
  if (only) return rangeOfOne(whole, only);
  if (sinceMs === undefined) return whole.filter(isOpen);
  const starts = await admin.fetchTopicOffsetsByTimestamp(topic, sinceMs);
  return whole.map((range) => startingAt(range, starts)).filter(isOpen);
}

function rangeOfOne(
  whole: readonly OffsetRange[],
  { partition, offset }: { partition: number; offset: number },
): OffsetRange[] {
  const isThere = whole.some(
    (range) => range.partition === partition && offset >= range.from && offset < range.end,
  );
  return isThere ? [{ partition, from: offset, end: offset + 1 }] : [];
}

function startingAt(
  range: OffsetRange,
  starts: readonly { partition: number; offset: string }[],
): OffsetRange {
  const start = starts.find(({ partition }) => partition === range.partition);
  return { ...range, from: Math.max(range.from, Number(start?.offset ?? 0)) };
}

function isOpen({ from, end }: OffsetRange): boolean {
  return from < end;
}
