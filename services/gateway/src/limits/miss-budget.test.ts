import { beforeEach, expect, test } from '@jest/globals';
import { ApiError } from '../http/api-error.ts';
import { createMissBudget, type MissBudget } from './miss-budget.ts';

const PER_SECOND = 200;
const MOST_UNDER_WAY = 2_000;

let nowMs: number;
let budget: MissBudget;

beforeEach(() => {
  nowMs = 1_000_000;
  budget = createMissBudget(() => nowMs);
});

const isFound = (found: string | null): boolean => found !== null;
const lookUp = (address: string, found: string | null = null): Promise<string | null> =>
  budget.lookUp(address, () => Promise.resolve(found), isFound);

/** Returns how many of so many look-ups were made before the first was refused. */
async function misses(times: number, addressOf: (n: number) => string): Promise<number> {
  for (let n = 0; n < times; n += 1) {
    const refusal = await lookUp(addressOf(n)).catch((error: unknown) => error);
    if (!(refusal instanceof ApiError)) continue;
    expect(refusal).toMatchObject({ status: 429, code: 'too_many_wrong_keys', isDelayed: true });
    expect(refusal.headers).toHaveProperty('Retry-After');
    return n;
  }
  return times;
}

test('one network has half of the misses of a second, an IPv6 /48 with all its prefixes', async () => {
  const inOneNetwork = (n: number): string => `2001:db8:1:${n.toString(16)}::1`;
  expect(await misses(10 * PER_SECOND, inOneNetwork)).toBe(PER_SECOND / 2);
  expect(await lookUp('2001:db8:2::1', 'key')).toBe('key');
  expect(await lookUp('192.0.2.1')).toBeNull();
});

test('all networks together have no more misses in a second than the budget', async () => {
  const made = await misses(10 * PER_SECOND, (n) => `192.0.${n >> 8}.${n & 255}`);
  expect(made).toBeLessThanOrEqual(PER_SECOND);
  expect(made).toBeGreaterThan(PER_SECOND - 3);
  nowMs += 1_000;
  expect(await misses(50, (n) => `192.0.2.${n}`)).toBe(50);
});

test('look-ups that find a key use up nothing', async () => {
  for (let n = 0; n < 10 * PER_SECOND; n += 1) await lookUp('192.0.2.1', 'key');
  expect(await misses(10 * PER_SECOND, () => '192.0.2.1')).toBe(PER_SECOND / 2);
});

/** Begins look-ups that MongoDB does not answer before `answer` or `fail` is called. */
function begin(times: number) {
  const { promise, resolve, reject } = Promise.withResolvers<string | null>();
  const made = Array.from({ length: times }, () =>
    budget
      .lookUp('192.0.2.1', () => promise, isFound)
      .then(
        () => null,
        (error: unknown) => error,
      ),
  );
  return { made: Promise.all(made), answer: resolve, fail: reject };
}

test('look-ups under way are no misses: a thousand of one network find their keys', async () => {
  const { made, answer } = begin(MOST_UNDER_WAY / 2);
  expect(await lookUp('198.51.100.1', 'key')).toBe('key');
  answer('key');
  expect(new Set(await made)).toEqual(new Set([null]));
  expect(await misses(10 * PER_SECOND, () => '192.0.2.1')).toBe(PER_SECOND / 2);
});

test('one network has half of the look-ups under way, and then gets 503', async () => {
  const { made, fail } = begin(MOST_UNDER_WAY / 2);
  await expect(lookUp('192.0.2.1', 'key')).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
    reason: 'too_many_waiting',
  });
  expect(await lookUp('198.51.100.1', 'key')).toBe('key');
  fail(new Error('MongoDB is away'));
  await made;
  expect(await lookUp('192.0.2.1', 'key')).toBe('key');
});

test('look-ups that were under way together count as misses in the second of their end, up to the share', async () => {
  const { made, answer } = begin(MOST_UNDER_WAY / 2);
  nowMs += 1_000;
  answer(null);
  await made;
  expect(await misses(1, () => '192.0.2.1')).toBe(0);
  expect(await lookUp('198.51.100.1')).toBeNull();
  nowMs += 1_000;
  expect(await lookUp('192.0.2.1')).toBeNull();
});
