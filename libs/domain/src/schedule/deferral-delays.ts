import { delayListSchema } from './retry-schedule.ts';

/**
 * The delays that a deferral can have, in milliseconds, each longer than the one before. A deferral
 * uses up no attempt, unlike the delays of the retry schedule, which follow a failed one.
 */
export type DeferralDelays = readonly number[];

export const DEFAULT_DEFERRAL_DELAYS = '1s,5s,15s,1m,5m,30m,2h,12h';

/**
 * Reads text such as `1s,5s,15s` from the configuration. Delays that do not rise are refused, not
 * sorted: `15s,1s,5m` was more likely meant as `15s,1m,5m`.
 */
export const deferralDelaysSchema = delayListSchema(DEFAULT_DEFERRAL_DELAYS).superRefine(
  (delaysMs: DeferralDelays, context) => {
    const wrong = delaysMs.findIndex((delayMs, index) => delayMs <= (delaysMs[index - 1] ?? 0));
    if (wrong < 0) return;
    context.addIssue({
      code: 'custom',
      message: `each delay must be longer than the one before it; number ${wrong + 1} is not`,
    });
  },
);
