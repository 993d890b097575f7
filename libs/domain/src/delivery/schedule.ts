import { z } from 'zod';
import { requiredAt } from '../required.ts';
import type { Header } from '../webhook.ts';
import type { Ending } from './delivery.ts';

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
function delayListSchema(example: string) {
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
 * Returns the delay between the end of failed attempt `attemptNumber` (from 1) and the next one, in milliseconds;
 * null after the last attempt.
 */
export function delayAfterAttempt(schedule: RetrySchedule, attemptNumber: number): number | null {
  return schedule[attemptNumber - 1] ?? null;
}

/** Returns the shortest exact spelling of a delay, for topic names and metrics: `5m` for 300000. */
export function formatDelay(delayMs: number): string {
  if (delayMs % UNIT_MS.h === 0) return `${delayMs / UNIT_MS.h}h`;
  if (delayMs % UNIT_MS.m === 0) return `${delayMs / UNIT_MS.m}m`;
  if (delayMs % UNIT_MS.s === 0) return `${delayMs / UNIT_MS.s}s`;
  return `${delayMs}ms`;
}

/** Reads `5m` as 300000. Returns null unless the text is a delay from 10 ms to seven days. */
export function parseDelay(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  if (!match) return null;
  const delayMs = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  return delayMs >= MIN_DELAY_MS && delayMs <= MAX_DELAY_MS ? delayMs : null;
}

/** The attempt that follows a failed one. */
export interface NextAttempt {
  attemptNumber: number;
  /** Between the end of the failed attempt and this one. */
  delayMs: number;
  /** Milliseconds since 1970. */
  dueAtMs: number;
}

/**
 * Returns the attempt after a failed one (docs/contract.md C10.5); null after the last attempt of the schedule, and after
 * one that ends its delivery before.
 */
export function nextAttemptAfter(
  failed: { attemptNumber: number; endedAtMs: number; ending?: Ending | undefined },
  schedule: RetrySchedule,
): NextAttempt | null {
  if (failed.ending) return null;
  const delayMs = delayAfterAttempt(schedule, failed.attemptNumber);
  if (delayMs === null) return null;
  return {
    attemptNumber: failed.attemptNumber + 1,
    delayMs,
    dueAtMs: failed.endedAtMs + delayMs,
  };
}

/** The longest pause that an endpoint may request: after an hour it gets the next attempt. */
export const MAX_HOLD_MS = 3_600_000;

/**
 * Returns the pause that a response requests, in milliseconds from now: `Retry-After` as seconds or as an HTTP date
 * (RFC 9110, 10.2.3), at most an hour. Null when the header is missing or unreadable.
 */
export function retryAfterMsOf(headers: readonly Header[], nowMs: number): number | null {
  const text = headers.find(({ key }) => key.toLowerCase() === 'retry-after')?.value.trim();
  if (!text) return null;
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDateMsOf(text, nowMs) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), MAX_HOLD_MS);
}

/** The three forms of RFC 9110, 5.6.7; all are in UTC, whatever the time zone of this process. */
const DATE_FORMS = [
  /^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat), (?<day>\d\d?) (?<month>\w{3}) (?<year>\d{4}) (?<time>[\d:]+) GMT$/,
  /^(?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day, (?<day>\d\d?)-(?<month>\w{3})-(?<year>\d\d) (?<time>[\d:]+) GMT$/,
  /^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat) (?<month>\w{3}) +(?<day>\d\d?) (?<time>[\d:]+) (?<year>\d{4})$/,
];
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
/** The second 60 is a leap second. */
const TIME = /^([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)$/;

/**
 * Returns the milliseconds since 1970 of an HTTP date; NaN for any other text, such as 31 February. `Date.parse`
 * would read the form of asctime in local time, and many other texts as dates.
 */
function httpDateMsOf(text: string, nowMs: number): number {
  const form = DATE_FORMS.find((each) => each.test(text));
  const { day = '', month = '', year = '', time = '' } = form?.exec(text)?.groups ?? {};
  const [, hours, minutes, seconds] = TIME.exec(time)?.map(Number) ?? [];
  if (hours === undefined || minutes === undefined || seconds === undefined) return NaN;
  const fullYear = year.length === 2 ? nearestYear(Number(year), nowMs) : Number(year);
  const midnightMs = Date.UTC(fullYear, MONTHS.indexOf(month), Number(day));
  const isReal = new Date(midnightMs).getUTCDate() === Number(day) && MONTHS.includes(month);
  return isReal ? midnightMs + ((hours * 60 + minutes) * 60 + seconds) * 1_000 : NaN;
}

/** A year of two digits is at most 50 years ahead, otherwise in the past (RFC 9110, 5.6.7). */
function nearestYear(digits: number, nowMs: number): number {
  const latest = new Date(nowMs).getUTCFullYear() + 50;
  return latest - ((latest - digits) % 100);
}

/**
 * The delays of deferrals, in milliseconds, each longer than the one before. A deferral uses up no attempt of the
 * schedule.
 */
export type DeferralDelays = readonly number[];

export const DEFAULT_DEFERRAL_DELAYS = '1s,5s,15s,1m,5m,30m,2h,12h';

/**
 * The least value of the longest delay. An attempt whose reservation is further away than the longest delay is
 * released, read and deferred again each time that delay has passed. A retry process releases 1,500 records a second
 * (ARCHITECTURE.md, Sizing): a minute allows a backlog of 90,000 attempts, a second one of 1,500.
 */
const LEAST_LONGEST_MS = 60_000;

/**
 * Reads text such as `1s,5s,1m` from the configuration. Delays that do not rise are refused: `15s,1s,5m` was more
 * likely meant as `15s,1m,5m` than as a list to be sorted.
 */
export const deferralDelaysSchema = delayListSchema(DEFAULT_DEFERRAL_DELAYS).superRefine(
  (delaysMs: DeferralDelays, context) => {
    const wrong = delaysMs.findIndex((delayMs, index) => delayMs <= (delaysMs[index - 1] ?? 0));
    if (wrong >= 0) {
      context.addIssue({
        code: 'custom',
        message: `each delay must be longer than the one before it; number ${wrong + 1} is not`,
      });
    } else if (requiredAt(delaysMs, delaysMs.length - 1, 'deferral delay') < LEAST_LONGEST_MS) {
      context.addIssue({
        code: 'custom',
        message: `the last delay must be ${formatDelay(LEAST_LONGEST_MS)} or longer: an attempt that is reserved for later is read and written again after each delay`,
      });
    }
  },
);
