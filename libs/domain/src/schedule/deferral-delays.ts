import { requiredAt } from '../required.ts';
import { delayListSchema, formatDelay } from './retry-schedule.ts';

/**
 * The delays that a deferral can have, in milliseconds, each longer than the one before. A deferral
 * uses up no attempt, unlike the delays of the retry schedule, which follow a failed one.
 */
export type DeferralDelays = readonly number[];

export const DEFAULT_DEFERRAL_DELAYS = '1s,5s,15s,1m,5m,30m,2h,12h';

/**
 * The longest delay is at least this. An attempt whose turn is further away than the longest delay is released,
 * read and deferred again each time that delay has passed. A retry process releases 1,500 records a second
 * (ARCHITECTURE.md, Sizing): with a minute that is a backlog of 90,000 attempts, with a second one of 1,500.
 */
const LEAST_LONGEST_MS = 60_000;

/**
 * Reads text such as `1s,5s,1m` from the configuration. Delays that do not rise are refused, not
 * sorted: `15s,1s,5m` was more likely meant as `15s,1m,5m`.
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
        message: `the last delay must be ${formatDelay(LEAST_LONGEST_MS)} or longer: an attempt whose turn is further away is read and written again after each one`,
      });
    }
  },
);
