import { describe, expect, test } from '@jest/globals';
import type { ClaimedKey, KeyHolder } from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import { createFreeClaims } from './accept-records.ts';
import type { IngestedMessage } from './read-record.ts';

const NOON_MS = Date.UTC(2026, 10, 27, 12);
/** An id of that noon. */
const OF_NOON = 'msg_01m8ee0vg00000000000000000';
const place = (n: number): string => `kafka/c/orders/0/${n}/1`;
const messages = [0, 1].map((n) => ({ key: `k${n}`, place: place(n) }) as IngestedMessage);
const claim = (changed: Partial<ClaimedKey> = {}): ClaimedKey => ({
  kind: 'claimed',
  claimedFor: OF_NOON,
  ageMs: 5_000,
  ingestedFrom: place(0),
  ...changed,
});

/** `reads` has what each look-up finds; the last one repeats. */
function freeWith(
  reads: Record<string, KeyHolder | ClaimedKey>[],
  { nowMs = NOON_MS, areSpread = false } = {},
) {
  const released: string[] = [];
  let count = 0;
  const free = createFreeClaims({
    messages: {
      findKeyHolders: () => {
        const found = reads[Math.min(count, reads.length - 1)] ?? {};
        count += 1;
        return Promise.resolve(new Map(Object.entries(found)));
      },
      releaseKeys: (_companyId, held) => {
        released.push(...held.map(({ key }) => key));
        return Promise.resolve();
      },
    },
    nowMs: () => nowMs,
    areDaysSpread: () => areSpread,
    stopping: new AbortController().signal,
    waitMs: 1,
  });
  return { released, free: () => free('comp_1', messages) };
}

describe('the claims of a former owner', () => {
  test('are released when they were made for the same record and stay without a message', async () => {
    const { released, free } = freeWith([{ k0: claim() }]);
    await free();
    expect(released).toEqual(['k0']);
  });

  test('stay when their message is stored meanwhile', async () => {
    const holder = { kind: 'holder' } as KeyHolder;
    const { released, free } = freeWith([{ k0: claim() }, { k0: holder }]);
    await free();
    expect(released).toEqual([]);
  });

  test.each([
    ['of another record', claim({ ingestedFrom: place(7) })],
    ['of a request of the API', { kind: 'claimed' as const, claimedFor: OF_NOON, ageMs: 5_000 }],
  ])('stay when they are %s, which may be under way', async (_what, other) => {
    const { released, free } = freeWith([{ k0: other }]);
    await free();
    expect(released).toEqual([]);
  });

  test('stay when another process has claimed the key meanwhile, and are looked up again', async () => {
    const { released, free } = freeWith([{ k0: claim() }, { k0: claim({ claimedFor: 'msg_2' }) }]);
    await expect(free()).rejects.toThrow('not over yet');
    expect(released).toEqual([]);
  });

  test.each([
    ['around midnight', { nowMs: Date.UTC(2026, 10, 27, 23, 59, 30) }],
    ['of the day before', { nowMs: Date.UTC(2026, 10, 28, 0, 0, 30) }],
    ['in a database that is spread over shards', { areSpread: true }],
  ])('have to be over %s: nothing but them refuses a second message', async (_what, given) => {
    const { released, free } = freeWith([{ k0: claim() }], given);
    await expect(free()).rejects.toThrow('not over yet');
    expect(released).toEqual([]);
    const later = freeWith([{ k0: claim({ ageMs: 120_000 }) }], given);
    await later.free();
    expect(later.released).toEqual(['k0']);
  });
});
