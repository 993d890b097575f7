import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type Entered,
  type QueueHarness,
  reservationsOf,
} from '../../../../test/support/isolation/queue-harness.ts';

/** There is room for four payloads, two of each company, and there are slots for six attempts. */
const LIMITS = { fast: 6, slow: 6 };

let harness: QueueHarness;

beforeEach(() => {
  harness = createQueueHarness({ limits: LIMITS });
});

/** Retries to webhooks of a company, one each, whose payloads have to be loaded. */
async function enter(companyId: string, times: number, from = 0): Promise<Entered[]> {
  const all: Entered[] = [];
  for (let n = from; n < from + times; n += 1) {
    const as = { companyId, hasPayload: () => false };
    all.push(...(await harness.enter(`${companyId}${n}`, 'retry', 1, as)));
  }
  return all;
}

const started = (all: Entered[]): number => count(all).started;

describe('attempts whose payload has to be loaded', () => {
  it('hold no slot while they wait for memory', async () => {
    const a = await enter('a', 20);
    const b = await enter('b', 2);
    const withPayload = await harness.enter('c', 'first', 2);
    expect([a, b, withPayload].map(started)).toEqual([2, 2, 2]);
    expect(harness.queues.running()).toBe(6);
  });

  it('start as soon as others have ended, in the order in which they came', async () => {
    const a = await enter('a', 5);
    await harness.finish(a.slice(0, 1));
    expect(a.map(({ slot }) => slot !== undefined)).toEqual([true, true, true, false, false]);
    await harness.finish(a.slice(1, 3));
    expect(started(a)).toBe(5);
  });

  it('start as soon as a payload turns out to be small or missing', async () => {
    harness = createQueueHarness({ limits: LIMITS, payloadBytes: 1_024 });
    const a = await enter('a', 4);
    expect(started(a)).toBe(2);
    await a[0]?.slot?.payload?.load('msg_1');
    await harness.nextLoop();
    expect(started(a)).toBe(3);
  });

  it('of companies that wait start in turns', async () => {
    const first = [...(await enter('a', 2)), ...(await enter('b', 2))];
    const [c, d] = [await enter('c', 4), await enter('d', 4)];
    expect([started(c), started(d)]).toEqual([0, 0]);
    await harness.finish(first.slice(0, 2));
    expect([started(c), started(d)]).toEqual([1, 1]);
  });

  it('go before attempts that came later and have waited for a slot only', async () => {
    const a = await enter('a', 3);
    const others = await harness.enter('b', 'first', 10);
    expect([started(a), started(others)]).toEqual([2, 4]);
    await harness.finish(a.slice(0, 1));
    expect([started(a), started(others)]).toEqual([3, 4]);
  });

  it('do not keep attempts of the same webhook that have their payload', async () => {
    await enter('a', 2);
    const waiting = await enter('a', 1, 2);
    const fresh = await harness.enter('a2', 'first', 2, { companyId: 'a' });
    expect([started(waiting), started(fresh)]).toEqual([0, 2]);
  });

  it('wait for memory when they have dropped their payload while they waited', async () => {
    await enter('a', 2);
    let isDropped = false;
    const slots = await harness.enter('b', 'first', 4);
    const as = {
      companyId: 'a',
      hasPayload: () => !isDropped,
      dropPayload: () => (isDropped = true),
    };
    const late = await harness.enter('a9', 'first', 1, as);
    late[0]?.candidate.dropPayload();
    await harness.finish(slots);
    expect(started(late)).toBe(0);
  });

  it('are deferred when there was no memory for half a minute, and leave none reserved', async () => {
    const a = await enter('a', 4);
    await harness.pass(31_000);
    expect(count(a)).toMatchObject({ started: 2, deferred: 2, waiting: 0 });
    await harness.finish(a);
    expect(harness.payloads.usedBytes()).toBe(0);
  });

  it('book no reservations at their endpoint, which did not cause the wait', async () => {
    await enter('a', 2);
    const as = { companyId: 'a', hasPayload: () => false };
    const waiting = await harness.enter('one', 'retry', 4, as);
    await harness.pass(31_000);
    const reservations = reservationsOf(waiting, 0);
    expect(reservations).toHaveLength(4);
    expect(new Set(reservations).size).toBe(1);
  });

  it('are deferred while the memory of records is short, so that others are read', async () => {
    const a = await enter('a', 4);
    harness.maxWait.ms = 1_000;
    const late = await enter('a', 2, 10);
    expect([count(a).started, count(late).deferred]).toEqual([2, 2]);
  });

  it('release their memory when they did not begin', async () => {
    harness = createQueueHarness({ limits: LIMITS, begins: false });
    const a = await enter('a', 3);
    await harness.finish(a.slice(0, 2), null);
    expect(started(a)).toBe(3);
    await harness.finish(a.slice(2), null);
    expect(harness.payloads.usedBytes()).toBe(0);
  });

  it('use the slow lane in the same way', async () => {
    const as = { companyId: 'a', hasPayload: () => false };
    const slow: Entered[] = [];
    for (let n = 0; n < 8; n += 1) slow.push(...(await harness.enter(`a${n}`, 'slow', 1, as)));
    const other = await harness.enter('b', 'slow', 2, { hasPayload: () => false });
    expect([started(slow), started(other)]).toEqual([2, 2]);
  });
});
