import { parseDelay } from '@posthorn/domain/schedule/retry-schedule.ts';
import { MINUTE_MS, wholeSteps, type Span } from '@posthorn/domain/stats/steps.ts';
import { z } from 'zod';

const SINCE = 'must be from 1m to 168h, a number with m or h, such as 1h';

/** A time before now, such as `1h`, in milliseconds. */
export const sinceOption = z.string().transform((text, context): number => {
  const sinceMs = parseDelay(text.trim());
  if (sinceMs !== null && sinceMs >= MINUTE_MS) return sinceMs;
  context.addIssue({ code: 'custom', message: SINCE });
  return z.NEVER;
});

/** The whole minutes from `sinceMs` before now up to now. */
export function lastMinutes(sinceMs: number, nowMs: number): Span {
  return wholeSteps('minute', { fromMs: nowMs - sinceMs, toMs: nowMs });
}

/** A month of UTC as `2026-11`, as the span from its beginning to its end. */
export const monthOption = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
  .transform((text): Span => {
    const [year = 0, month = 0] = text.split('-').map(Number);
    return { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) };
  });
