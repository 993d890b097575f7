import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { dueAtOf } from './hold-until-due.ts';

/**
 * When a parked record may go at the latest, whatever the wall clock says; Infinity for one that is
 * due within its delay. By the monotonic clock, in milliseconds.
 */
export type LatestRelease = (record: LogRecord, endOffset?: number) => number;

export interface LatestReleaseDeps {
  delayMsOf: (topic: string) => number;
  nowMs: () => number;
  monotonicMs: () => number;
}

/** By how much the clocks of two machines may differ without one being wrong. */
const CLOCK_SKEW_MS = 1_000;

/** What was in the partition when it was noticed. */
interface Noticed {
  endOffset: number;
  freeAtMs: number;
}

/**
 * Nothing can be due later than its delay from now: where something is, the clock was set back since
 * it was parked, or whoever parked it is ahead. It and all that lay in its partition then have waited
 * long enough when the delay has passed once more, which is never early and late by one delay at most.
 */
export function createLatestRelease(deps: LatestReleaseDeps): LatestRelease {
  const noticed = new Map<string, Noticed>();
  return (record, endOffset = record.offset + 1) => {
    const { topic, partition, offset } = record;
    const delayMs = deps.delayMsOf(topic);
    const dueAtMs = dueAtOf(record);
    if (dueAtMs === null || dueAtMs - deps.nowMs() <= delayMs + CLOCK_SKEW_MS) return Infinity;
    const key = `${topic}/${partition}`;
    const known = noticed.get(key);
    if (known && offset < known.endOffset) return known.freeAtMs;
    const freeAtMs = deps.monotonicMs() + delayMs;
    noticed.set(key, { endOffset, freeAtMs });
    return freeAtMs;
  };
}
