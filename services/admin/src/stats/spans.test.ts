import { expect, test } from '@jest/globals';
import { lastMinutes, monthOption, sinceOption } from './spans.ts';

test('a month is the span from its first millisecond to that of the next one', () => {
  const span = { fromMs: Date.UTC(2026, 11), toMs: Date.UTC(2027, 0) };
  expect(monthOption.parse('2026-12')).toEqual(span);
});

test.each(['2026', '2026-13', '2026-1', 'November'])('refuses %s as a month', (text) => {
  expect(monthOption.safeParse(text).error?.issues[0]?.message).toBe(
    'must be a month such as 2026-11',
  );
});

test.each(['0s', '30s', '169h', 'yesterday'])('refuses %s as a time before now', (text) => {
  expect(sinceOption.safeParse(text).success).toBe(false);
});

test('the last hour is the whole minutes that it touches', () => {
  const at = (text: string): number => Date.parse(`2026-11-24T${text}Z`);
  expect(lastMinutes(sinceOption.parse('1h'), at('06:28:50'))).toEqual({
    fromMs: at('05:28:00'),
    toMs: at('06:29:00'),
  });
});
