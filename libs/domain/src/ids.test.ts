import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import {
  attemptIdOf,
  createIdFactory,
  DAY_MS,
  dayName,
  dayNumberOf,
  dayNumberOfName,
  deliveryIdOf,
  firstIdAt,
  isId,
  timeMsOf,
  timePartOf,
} from './ids.ts';

const MANY = 10_000;

function expectGrowing(ids: string[]): void {
  expect(new Set(ids).size).toBe(ids.length);
  expect([...ids].sort()).toEqual(ids);
}

describe('ids', () => {
  test('grow in the order in which they are made within one millisecond', () => {
    const newId = createIdFactory({ nowMs: () => 1_700_000_000_000, randomBytes });
    expectGrowing(Array.from({ length: MANY }, () => newId('msg')));
  });

  test('grow also when the clock steps back and jumps about', () => {
    let calls = 0;
    const nowMs = () => 1_700_000_000_000 + ((calls++ * 7_919) % 2_000) - Math.floor(calls / 50);
    const newId = createIdFactory({ nowMs, randomBytes });
    expectGrowing(Array.from({ length: MANY }, () => newId('msg')));
  });

  test('grow when the lower half of the random part overflows', () => {
    const newId = createIdFactory({
      nowMs: () => 1,
      randomBytes: (size) => Buffer.alloc(size, 255),
    });
    const ids = [newId('msg'), newId('msg'), newId('msg')];
    expectGrowing(ids);
    expect(ids.every((id) => isId('msg', id))).toBe(true);
  });

  test('of a later millisecond sort behind, whatever their random part is', () => {
    let ms = 5;
    let fill = 255;
    const newId = createIdFactory({
      nowMs: () => ms,
      randomBytes: (size) => Buffer.alloc(size, fill),
    });
    const first = newId('msg');
    [ms, fill] = [6, 0];
    expect(newId('msg') > first).toBe(true);
  });

  test('spell their time as a ULID does', () => {
    const newId = createIdFactory({ nowMs: () => 1_469_918_176_385, randomBytes });
    // The example of the ULID specification.
    expect(timePartOf(newId('proj'))).toBe('01aryz6s41');
  });

  test('that are derived are stable and keep the time of what they are derived from', () => {
    const messageId = 'msg_01hf2m6q7xabcdefghjkmnpqrs';
    const deliveryId = deliveryIdOf(messageId, 'wh_a');
    expect(deliveryIdOf(messageId, 'wh_a')).toBe(deliveryId);
    expect(timePartOf(deliveryId)).toBe('01hf2m6q7x');
    expect(timePartOf(attemptIdOf(deliveryId, 3))).toBe('01hf2m6q7x');
    expect(isId('dlv', deliveryId)).toBe(true);
    expect(isId('att', attemptIdOf(deliveryId, 1))).toBe(true);
  });

  test('that are derived differ for another webhook, message or attempt number', () => {
    const deliveryId = deliveryIdOf('msg_01hf2m6q7xabcdefghjkmnpqrs', 'wh_a');
    expect(deliveryIdOf('msg_01hf2m6q7xabcdefghjkmnpqrs', 'wh_b')).not.toBe(deliveryId);
    expect(deliveryIdOf('msg_01hf2m6q7xabcdefghjkmnpqrt', 'wh_a')).not.toBe(deliveryId);
    const attempts = Array.from({ length: 20 }, (_, index) => attemptIdOf(deliveryId, index + 1));
    expect(new Set(attempts).size).toBe(20);
  });

  // So that ids written down by users stay findable: a change of the derivation must be noticed.
  test('that are derived never change between versions', () => {
    const deliveryId = deliveryIdOf('msg_01hf2m6q7xabcdefghjkmnpqrs', 'wh_a');
    expect([deliveryId, attemptIdOf(deliveryId, 1)]).toEqual([
      'dlv_01hf2m6q7xtyrcx2b9jcb3rc8w',
      'att_01hf2m6q7xtw1w44pj40b28yyn',
    ]);
  });

  test.each([
    ['msg_01hf2m6q7xabcdefghjkmnpqrs', true],
    ['msg_7zzzzzzzzzzzzzzzzzzzzzzzzz', true],
    ['msg_8zzzzzzzzzzzzzzzzzzzzzzzzz', false],
    ['msg_01HF2M6Q7XABCDEFGHJKMNPQRS', false],
    ['msg_01hf2m6q7xabcdefghjkmnpqru', false],
    ['msg_01hf2m6q7xabcdefghjkmnpqr', false],
    ['msg_01hf2m6q7xabcdefghjkmnpqrs\n', false],
    ['app_01hf2m6q7xabcdefghjkmnpqrs', false],
    ['', false],
  ])('isId of %j as a message is %s', (text, expected) => {
    expect(isId('msg', text)).toBe(expected);
  });
});

describe('the time in an id', () => {
  const times = fc.integer({ min: 0, max: 2 ** 48 - 1 });
  const idAt = (ms: number, random: Uint8Array): string =>
    createIdFactory({ nowMs: () => ms, randomBytes: () => Buffer.from(random) })('msg');
  const randoms = fc.uint8Array({ minLength: 10, maxLength: 10 });

  test('is the millisecond in which it was made, also of what is derived from it', () => {
    fc.assert(
      fc.property(times, randoms, (ms, random) => {
        const id = idAt(ms, random);
        expect(timeMsOf(id)).toBe(ms);
        expect(timeMsOf(deliveryIdOf(id, 'wh_a'))).toBe(ms);
      }),
    );
  });

  test('orders all ids: those made before a time are below the first id of that time, no others are', () => {
    const near = fc.integer({ min: -2, max: 2 });
    fc.assert(
      fc.property(times, fc.oneof(near, times), randoms, (boundMs, distanceMs, random) => {
        const ms = Math.max(0, Math.min(2 ** 48 - 1, boundMs + distanceMs));
        expect(firstIdAt('msg', boundMs) <= idAt(ms, random)).toBe(ms >= boundMs);
      }),
    );
  });
});

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
