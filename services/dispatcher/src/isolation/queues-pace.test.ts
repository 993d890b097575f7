import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type Entered,
  EPOCH_MS,
  type QueueHarness,
  reservationsOf,
} from '../../../../test/support/isolation/queue-harness.ts';

let harness: QueueHarness;
let sinceMs: number;

beforeEach(() => {
  harness = createQueueHarness();
  sinceMs = harness.time.nowMs();
});

const offer = (times: number, rateLimitPerSecond: number | null, id = 'a'): Promise<Entered[]> =>
  harness.enter(id, 'first', times, { rateLimitPerSecond });

/** When they got their slots, in milliseconds since the start of the test. */
const startTimes = (all: readonly Entered[]): (number | null)[] =>
  all.map(({ startedAtMs }) => (startedAtMs === undefined ? null : startedAtMs - sinceMs));

/** Each attempt ends at the moment in which it starts. */
async function passFinishing(all: readonly Entered[], ms: number, stepMs = 10): Promise<void> {
  const finished = new Set<Entered>();
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    const begun = all.filter((each) => each.slot && !finished.has(each));
    for (const each of begun) finished.add(each);
    await harness.finish(begun);
    await harness.pass(stepMs);
  }
}

describe('attempts of a webhook with a rate limit', () => {
  it('start at once without a limit', async () => {
    expect(count(await offer(16, null)).started).toBe(16);
  });

  it('are spaced evenly so that no second has more than the limit', async () => {
    const all = await offer(9, 4);
    await passFinishing(all, 2_100);
    expect(startTimes(all)).toEqual([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750, 2_000]);
  });

  it('start at once after idle time, and at the new pace after the limit changed', async () => {
    await harness.finish(await offer(1, 4));
    await harness.pass(250);
    await harness.finish(await offer(1, 4));
    const [waits] = await offer(1, 2);
    expect(waits?.slot).toBeUndefined();
    await harness.pass(250);
    expect(count(await offer(1, 2)).waiting).toBe(1);
    await harness.pass(1_000);
    expect(waits?.slot).toBeDefined();
  });

  it('do not wait for attempts of another webhook', async () => {
    await offer(3, 1);
    expect(count(await offer(1, 1, 'b')).started).toBe(1);
  });

  it('share one pace, whatever queue they stand in', async () => {
    await offer(1, 1);
    const as = { rateLimitPerSecond: 1 };
    const others = [
      await harness.enter('a', 'retry', 1, as),
      await harness.enter('a', 'slow', 1, as),
    ];
    expect(others.map((each) => count(each).waiting)).toEqual([1, 1]);
    await harness.pass(2_000);
    expect(others.map((each) => count(each).started)).toEqual([1, 1]);
  });

  it('catch up when a timer is late', async () => {
    const all = await offer(100, 50);
    harness.time.jump(60);
    await harness.pass(1);
    // Due at 20, 40 and 60 ms.
    expect(count(all).started).toBe(4);
  });

  it('are made when their time comes at the moment in which they enter', async () => {
    await harness.finish(await offer(1, 4));
    await harness.pass(249);
    // The gate is asked twice, and the clock moves in between.
    let asked = 0;
    harness.circuits.get = () => {
      asked += 1;
      if (asked === 2) harness.time.jump(1);
      return undefined;
    };
    const second = await offer(1, 4);
    expect(count(second)).toMatchObject({ started: 1, waiting: 0 });
  });

  it('catch up on 200 ms at most, so that a long stall causes no burst', async () => {
    const all = await offer(100, 100);
    harness.time.jump(500);
    await harness.pass(1);
    // One on time, then those of the last 200 ms.
    expect(count(all).started).toBeLessThanOrEqual(1 + 22);
  });
});

describe('attempts of a webhook with a rate limit that cannot wait here', () => {
  it('are deferred, except for those of the next half minute', async () => {
    const all = await offer(100, 1);
    expect(count(all)).toMatchObject({ started: 1, waiting: 30, deferred: 69 });
  });

  it('get reservations right behind those that wait, spaced by the pace', async () => {
    const all = await offer(431, 1);
    const reservations = reservationsOf(all, sinceMs);
    expect(reservations).toHaveLength(400);
    expect(reservations[0]).toBeLessThanOrEqual(33_000);
    expect(
      reservations.slice(1).map((reservation, n) => reservation - (reservations[n] ?? 0)),
    ).toEqual(Array(399).fill(1_000));
  });

  it('do not evict attempts that waited before them', async () => {
    const all = await offer(100, 1);
    await passFinishing(all, 30_500, 100);
    expect(count(all).started).toBe(31);
  });

  it('keep their reservation when they come back too early, and take it when it is near', async () => {
    const reservedAtMs = EPOCH_MS + sinceMs + 60_000;
    const as = { rateLimitPerSecond: 1, reservedAtMs };
    const [early] = await harness.enter('a', 'first', 1, as);
    expect(early?.admission).toEqual({ kind: 'defer', because: 'turn', reservedAtMs });
    await harness.pass(58_000);
    const [near] = await harness.enter('a', 'first', 1, as);
    expect(near?.admission?.kind).toBe('slot');
  });

  it('need not wait for their reservation when they come back after the limit was removed', async () => {
    const all = await offer(4_000, 1);
    const reservedAtMs = EPOCH_MS + sinceMs + Math.max(...reservationsOf(all, sinceMs));
    const as = { rateLimitPerSecond: null, reservedAtMs };
    const [back] = await harness.enter('a', 'first', 1, as);
    // The first of them are still here.
    await passFinishing([...all, ...(back ? [back] : [])], 1_000, 100);
    expect(back?.admission).toMatchObject({ kind: 'slot' });
  });

  it('wait ahead of attempts that were never deferred', async () => {
    const all = await offer(60, 1);
    const [reservedAtMs = 0] = reservationsOf(all, sinceMs).map((ms) => EPOCH_MS + sinceMs + ms);
    await passFinishing(all, 29_000, 100);
    const [back] = await harness.enter('a', 'first', 1, { rateLimitPerSecond: 1, reservedAtMs });
    const [fresh] = await offer(1, 1);
    expect([back?.admission, fresh?.admission?.kind]).toEqual([undefined, 'defer']);
  });

  it('are paced below one per second as well', async () => {
    const all = await offer(20, 0.2);
    expect(count(all)).toMatchObject({ started: 1, waiting: 6, deferred: 13 });
    await passFinishing(all, 10_100, 100);
    expect(startTimes(all).slice(0, 3)).toEqual([0, 5_000, 10_000]);
  });
});

describe('with a limit of attempts to one host', () => {
  const LIMITED = { limits: { perHostPerSecond: 4 } };

  beforeEach(() => {
    harness = createQueueHarness(LIMITED);
    sinceMs = harness.time.nowMs();
  });

  const enterAt = (id: string, host: string, times = 1, companyId = 'comp_1'): Promise<Entered[]> =>
    harness.enter(id, 'first', times, { companyId, url: `https://${host}/${id}` });

  it('the attempts of all webhooks of a company to that host are spaced, in turns', async () => {
    const a = await enterAt('a', 'one.example', 3);
    const b = await enterAt('b', 'one.example:8443', 2);
    await passFinishing([...a, ...b], 1_100);
    expect(startTimes(a)).toEqual([0, 250, 750]);
    expect(startTimes(b)).toEqual([500, 1_000]);
  });

  it('another host and another company do not wait', async () => {
    const limited = await enterAt('a', 'one.example', 2);
    const free = [
      ...(await enterAt('b', 'two.example')),
      ...(await enterAt('c', 'one.example', 1, 'comp_2')),
    ];
    expect(count(limited)).toMatchObject({ started: 1, waiting: 1 });
    expect(count(free).started).toBe(2);
  });

  it('a reservation from before is waited for only while attempts have reservations at that host', async () => {
    const reservedAtMs = EPOCH_MS + sinceMs + 60_000;
    const as = { companyId: 'comp_1', url: 'https://one.example/a', reservedAtMs };
    const [alone] = await harness.enter('a', 'first', 1, as);
    expect(alone?.admission).toMatchObject({ kind: 'slot' });
    await enterAt('b', 'one.example', 500);
    const [behind] = await harness.enter('a', 'first', 1, as);
    expect(behind?.admission).toMatchObject({ kind: 'defer', because: 'turn', reservedAtMs });
  });

  it('a name with a dot at the end is the same host', async () => {
    const all = [...(await enterAt('a', 'one.example')), ...(await enterAt('b', 'one.example.'))];
    expect(count(all)).toMatchObject({ started: 1, waiting: 1 });
  });

  it('no second has more than the limit, however many webhooks wait', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `wh_${n}`);
    const all = (await Promise.all(ids.map((id) => enterAt(id, 'one.example')))).flat();
    await passFinishing(all, 10_000);
    const sorted = startTimes(all).sort((a, b) => (a ?? 0) - (b ?? 0));
    expect(sorted).toEqual(Array.from({ length: 40 }, (_, n) => n * 250));
  });

  it('the pace is kept while an attempt waits for its endpoint', async () => {
    const one = { floor: 1, start: 1, ceiling: 1 };
    harness = createQueueHarness({ limits: { ...LIMITED.limits, perEndpoint: one } });
    const as = { companyId: 'comp_1', url: 'https://one.example/a' };
    const [first, second] = await harness.enter('a', 'slow', 2, as);
    await harness.pass(3_000);
    const [other] = await enterAt('b', 'one.example');
    expect([first?.slot, other?.slot]).toEqual([expect.anything(), expect.anything()]);
    await harness.finish(first ? [first] : []);
    expect(second?.admission).toBeUndefined();
    await harness.pass(250);
    expect(second?.slot).toBeDefined();
  });

  it('attempts that would wait too long are deferred, each to a reservation of its own', async () => {
    const ids = Array.from({ length: 200 }, (_, n) => `wh_${n}`);
    const all = (await Promise.all(ids.map((id) => enterAt(id, 'one.example')))).flat();
    await passFinishing(all, 900);
    const { deferred, waiting, started } = count(all);
    expect(started).toBe(4);
    expect(deferred).toBeGreaterThan(50);
    expect(waiting).toBe(200 - started - deferred);
    expect(new Set(reservationsOf(all, sinceMs)).size).toBe(deferred);
  });
});
