import { beginningOf, HOUR_MS, STEP_MS, type Span, type Step } from './steps.ts';

/** The spans of time that an overview may cover, up to now. */
export const RANGES = ['1h', '24h', '7d', '30d'] as const;
export type Range = (typeof RANGES)[number];

const DAY_MS = STEP_MS.day;

const SHAPES: Readonly<Record<Range, { step: Step; spanMs: number }>> = {
  '1h': { step: 'minute', spanMs: HOUR_MS },
  '24h': { step: 'hour', spanMs: DAY_MS },
  '7d': { step: 'hour', spanMs: 7 * DAY_MS },
  '30d': { step: 'day', spanMs: 30 * DAY_MS },
};

export interface RangeSpan {
  /** What one point of the range stands for. */
  step: Step;
  /** Whole steps, of which the last one has just begun. */
  span: Span;
}

export function spanOfRange(range: Range, nowMs: number): RangeSpan {
  const { step, spanMs } = SHAPES[range];
  const toMs = beginningOf(step, nowMs) + STEP_MS[step];
  return { step, span: { fromMs: toMs - spanMs, toMs } };
}
