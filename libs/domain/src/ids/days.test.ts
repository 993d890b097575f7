import { expect, test } from '@jest/globals';
import { dayName, dayNumberOf, dayNumberOfName, DAY_MS } from './days.ts';
import { attemptIdOf, deliveryIdOf, firstIdAt, timeMsOf } from './ids.ts';

const MIDNIGHT = Date.UTC(2026, 10, 25);
const dayNumberOfId = (id: string): number => dayNumberOf(timeMsOf(id));
const idAt = (ms: number): string => `${firstIdAt('msg', ms)}${'0'.repeat(16)}`;

test('a day ends with its last millisecond in UTC', () => {
  const names = [MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + DAY_MS - 1].map((ms) =>
    dayName(dayNumberOf(ms)),
  );
  expect(names).toEqual(['2026-11-24', '2026-11-25', '2026-11-25']);
});

test('a delivery and its attempts have the day of their message', () => {
  for (const ms of [MIDNIGHT - 1, MIDNIGHT]) {
    const deliveryId = deliveryIdOf(idAt(ms), 'wh_1');
    const days = [idAt(ms), deliveryId, attemptIdOf(deliveryId, 7)].map(dayNumberOfId);
    expect(new Set(days)).toEqual(new Set([dayNumberOf(ms)]));
  }
});

test('a name leads back to its day, and other texts to none', () => {
  expect(dayNumberOfName('2026-11-25')).toBe(dayNumberOf(MIDNIGHT));
  const others = ['2026-13-45', '2026-11-25 ', '2026-11', 'system.profile', ''];
  expect(others.map(dayNumberOfName)).toEqual(others.map(() => null));
});

test('every text that a client may send for an id has a day', () => {
  const texts = ['', 'x', 'dlv_none', `msg_7${'z'.repeat(25)}`, `msg_${'~'.repeat(26)}`];
  for (const text of texts) expect(dayName(dayNumberOfId(text))).toMatch(/^.{10}$/);
});
