import { expect, test } from '@jest/globals';
import { monthOption } from './stats-commands.ts';

test('a month is the span from its first millisecond to that of the next one', () => {
  const span = { fromMs: Date.UTC(2026, 11), toMs: Date.UTC(2027, 0) };
  expect(monthOption.parse('2026-12')).toEqual(span);
});

test.each(['2026', '2026-13', '2026-1', 'November'])('refuses %s as a month', (text) => {
  expect(monthOption.safeParse(text).error?.issues[0]?.message).toBe(
    'must be a month such as 2026-11',
  );
});
