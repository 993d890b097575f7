import { z } from 'zod';

/**
 * Delays between attempts, in milliseconds: entry 0 follows attempt 1 (docs/contract.md C10.4). A
 * delivery has one attempt more than its schedule has delays.
 */
export type RetrySchedule = readonly number[];

/** Six delays: a delivery has at most seven attempts, the last of them 17 h 35 min 5 s after the first. */
export const DEFAULT_RETRY_DELAYS = '5s,5m,30m,2h,5h,10h';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const MIN_DELAY_MS = 10;
const MAX_DELAY_MS = 7 * 24 * UNIT_MS.h;
const MAX_STEPS = 20;

/** Reads text such as `5s,5m,30m` as delays in milliseconds. The error message shows `example`. */
export function delayListSchema(example: string) {
  return z.string().transform((text, context): readonly number[] => {
    const parts = text.split(',').map((part) => part.trim());
    const delaysMs = parts.map(parseDelay);
    if (parts.length > MAX_STEPS || delaysMs.some((delayMs) => delayMs === null)) {
      context.addIssue({
        code: 'custom',
        message: `must be 1 to ${MAX_STEPS} delays from 10ms to 168h, each a number with ms, s, m or h, separated by commas, such as ${example}`,
      });
      return z.NEVER;
    }
    return delaysMs.filter((delayMs) => delayMs !== null);
  });
}

/** Reads the retry schedule from the configuration. */
export const retryScheduleSchema = delayListSchema(DEFAULT_RETRY_DELAYS);

/**
 * The delay in milliseconds after attempt `attemptNumber` (from 1) has failed, counted from the end of
 * that attempt; null when it was the last one.
 */
export function delayAfterAttempt(schedule: RetrySchedule, attemptNumber: number): number | null {
  return schedule[attemptNumber - 1] ?? null;
}

/** The shortest exact spelling of a delay, for topic names and metrics: 300000 is `5m`. */
export function formatDelay(delayMs: number): string {
  if (delayMs % UNIT_MS.h === 0) return `${delayMs / UNIT_MS.h}h`;
  if (delayMs % UNIT_MS.m === 0) return `${delayMs / UNIT_MS.m}m`;
  if (delayMs % UNIT_MS.s === 0) return `${delayMs / UNIT_MS.s}s`;
  return `${delayMs}ms`;
}

/** Reads `5m` as 300000; null for anything that is not a delay from 10 ms to seven days. */
export function parseDelay(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  if (!match) return null;
  const delayMs = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  return delayMs >= MIN_DELAY_MS && delayMs <= MAX_DELAY_MS ? delayMs : null;
}
