import { setTimeout as wait } from 'node:timers/promises';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';

/** Header of a parked record: when it is due, in milliseconds since 1970. */
export const DUE_AT_HEADER = 'due-at';

/**
 * What is due within this time is held in memory; a partition whose head is due later is paused.
 * Measured for a 5 s delay: p99 lateness 44 ms so, 130 ms with pausing until the very end.
 */
export const HORIZON_MS = 2_000;

/** Milliseconds since 1970; null when the record carries no usable time. */
export function dueAtOf({ headers }: LogRecord): number | null {
  const text = headers[DUE_AT_HEADER];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** How long the partition of this record should rest before the record is taken into memory. */
export function postponementMs(record: LogRecord, nowMs: number): number {
  const dueAtMs = dueAtOf(record);
  return dueAtMs === null ? 0 : dueAtMs - HORIZON_MS - nowMs;
}

/** Resolves at or after `dueAtMs`, never before: a timer may fire a millisecond early. Rejects when aborted. */
export async function holdUntilDue(
  dueAtMs: number,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  for (let restMs = dueAtMs - nowMs(); restMs > 0; restMs = dueAtMs - nowMs()) {
    await wait(Math.min(restMs, HORIZON_MS), undefined, { signal });
  }
}
