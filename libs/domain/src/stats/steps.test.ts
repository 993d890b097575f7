import { expect, test } from '@jest/globals';
import { beginningOf, wholeSteps } from './steps.ts';

const at = (text: string): number => Date.parse(`2026-11-24T${text}Z`);

test('steps begin at whole minutes, hours and days of UTC', () => {
  const ms = at('06:28:50.123');
  const beginnings = (['minute', 'hour', 'day'] as const).map((step) => beginningOf(step, ms));
  expect(beginnings).toEqual([at('06:28:00'), at('06:00:00'), at('00:00:00')]);
});

test('a span is widened to the steps that it touches', () => {
  const span = { fromMs: at('06:28:50'), toMs: at('07:00:01') };
  expect(wholeSteps('minute', span)).toEqual({ fromMs: at('06:28:00'), toMs: at('07:01:00') });
  expect(wholeSteps('hour', span)).toEqual({ fromMs: at('06:00:00'), toMs: at('08:00:00') });
});

test('the step that begins at the end of a span is not part of it', () => {
  const span = { fromMs: at('06:00:00'), toMs: at('07:00:00') };
  expect(wholeSteps('hour', span)).toEqual(span);
});
