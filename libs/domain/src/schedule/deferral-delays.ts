import { delayListSchema } from './retry-schedule.ts';

/**
 * Waits of deferrals, in milliseconds, each longer than the one before. A deferral uses no attempt
 * up; the delays of the retry schedule are waits after a failed one.
 */
export type DeferralDelays = readonly number[];

export const DEFAULT_DEFERRAL_DELAYS = '1s,5s,15s,1m,5m,30m,2h,12h';

/**
 * Text such as `1s,5s,15s` to delays in milliseconds; for configuration. A delay that does not rise
 * is refused, not sorted: `15s,1s,5m` is more likely `15s,1m,5m` than what was meant.
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
