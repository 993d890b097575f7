/** The spans of time for which there are figures. */
export const STEPS = ['minute', 'hour', 'day'] as const;
export type Step = (typeof STEPS)[number];

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

export const STEP_MS: Readonly<Record<Step, number>> = {
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
};

/**
 * The longest span with figures for each step, in milliseconds: a day of minutes, 31 days of hours or days. So a
 * response has 1,440 points at most, and is made from 745 documents at most.
 */
export const MAX_SPAN_MS: Readonly<Record<Step, number>> = {
  minute: STEP_MS.day,
  hour: 31 * STEP_MS.day,
  day: 31 * STEP_MS.day,
};

/** The span that is shown unless a client says otherwise: 60 minutes, 24 hours or 30 days. */
export const DEFAULT_SPAN_MS: Readonly<Record<Step, number>> = {
  minute: 60 * MINUTE_MS,
  hour: 24 * HOUR_MS,
  day: 30 * STEP_MS.day,
};

/** The beginning of the step of that time, in UTC; both in milliseconds since 1970. */
export function beginningOf(step: Step, ms: number): number {
  return ms - (ms % STEP_MS[step]);
}

/** From the first millisecond to the one after the last, in milliseconds since 1970. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** Returns the whole steps that the span touches. */
export function wholeSteps(step: Step, { fromMs, toMs }: Span): Span {
  const last = beginningOf(step, Math.max(fromMs, toMs - 1));
  return { fromMs: beginningOf(step, fromMs), toMs: last + STEP_MS[step] };
}
