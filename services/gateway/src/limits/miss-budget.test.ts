import { beforeEach, expect, test } from '@jest/globals';
import { ApiError } from '../http/api-error.ts';
import { createMissBudget, type MissBudget } from './miss-budget.ts';

const PER_SECOND = 200;

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

test('look-ups that are under way count, and one that fails gives its place back', async () => {
  let fail: (error: Error) => void = () => undefined;
  const away = new Promise<string | null>((_, reject) => (fail = reject));
  const waiting = Array.from({ length: PER_SECOND / 2 }, () =>
    budget.lookUp('192.0.2.1', () => away, isFound).catch(() => 'failed'),
  );
  expect(await misses(1, () => '192.0.2.1')).toBe(0);
  fail(new Error('MongoDB is away'));
  await Promise.all(waiting);
  expect(await misses(1, () => '192.0.2.1')).toBe(1);
});
