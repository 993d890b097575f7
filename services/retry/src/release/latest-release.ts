import { DUE_AT_HEADER, readMs } from '@posthorn/domain/records/record-headers.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';

/**
 * Returns when a parked record is released at the latest, whatever the wall clock shows, in
 * milliseconds of the monotonic clock; Infinity for a record that is due within its delay.
 */
export type LatestRelease = (record: LogRecord, endOffset?: number) => number;

export interface LatestReleaseDeps {
  delayMsOf: (topic: string) => number;
  nowMs: () => number;
  monotonicMs: () => number;
}

/** The clocks of two machines may differ by this much. */
const CLOCK_SKEW_MS = 1_000;

/** A clock change that was found in a partition. */
interface ClockChange {
  /** The records before this offset were parked before it was found. */
  endOffset: number;
  /** When they are released, by the monotonic clock. */
  releaseAtMs: number;
}

/**
 * No record can be due later than its delay from now. When one is, the clock was set back since it was
 * parked, or the clock of the process that parked it is ahead. This record and all others that are in
 * its partition then have waited long enough when the delay has passed once more: they are never
 * released early, and late by one delay at most.
 */
export function createLatestRelease(deps: LatestReleaseDeps): LatestRelease {
  const changes = new Map<string, ClockChange>();
  return (record, endOffset = record.offset + 1) => {
    const { topic, partition, offset } = record;
    const delayMs = deps.delayMsOf(topic);
    const dueAtMs = readMs(record.headers, DUE_AT_HEADER);
    if (dueAtMs === null || dueAtMs - deps.nowMs() <= delayMs + CLOCK_SKEW_MS) return Infinity;
    const key = `${topic}/${partition}`;
    const known = changes.get(key);
    if (known && offset < known.endOffset) return known.releaseAtMs;
    const releaseAtMs = deps.monotonicMs() + delayMs;
    changes.set(key, { endOffset, releaseAtMs });
    return releaseAtMs;
  };
}
