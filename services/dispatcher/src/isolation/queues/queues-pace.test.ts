import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  EPOCH_MS,
  turnsOf,
  type Entered,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';

let bench: QueueBench;
let sinceMs: number;

beforeEach(() => {
  bench = createQueueBench();
  sinceMs = bench.time.nowMs();
});

const offer = (times: number, rateLimitPerSecond: number | null, id = 'a'): Promise<Entered[]> =>
  bench.enter(id, 'first', times, { rateLimitPerSecond });

/** When they got their turns, in milliseconds since the beginning of the test. */
const beginnings = (all: readonly Entered[]): (number | null)[] =>
  all.map(({ turnMs }) => (turnMs === undefined ? null : turnMs - sinceMs));

/** Each attempt ends in the moment in which it begins. */
async function passFinishing(all: readonly Entered[], ms: number, stepMs = 10): Promise<void> {
  const finished = new Set<Entered>();
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    const begun = all.filter((each) => each.turn && !finished.has(each));
    for (const each of begun) finished.add(each);
    await bench.finish(begun);
    await bench.pass(stepMs);
  }
}

describe('attempts of a webhook with a rate limit', () => {
  it('go at once without a limit', async () => {
    expect(count(await offer(16, null)).turns).toBe(16);
  });

  it('are spaced evenly, so that no second holds more than the limit', async () => {
    const all = await offer(9, 4);
    await passFinishing(all, 2_100);
    expect(beginnings(all)).toEqual([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750, 2_000]);
  });

  it('go at once again after a pause, and at the new pace after a change of the limit', async () => {
    await bench.finish(await offer(1, 4));
    await bench.pass(250);
    await bench.finish(await offer(1, 4));
    const [waits] = await offer(1, 2);
    expect(waits?.turn).toBeUndefined();
    await bench.pass(250);
    expect(count(await offer(1, 2)).waiting).toBe(1);
    await bench.pass(1_000);
    expect(waits?.turn).toBeDefined();
  });

  it('do not wait for those of another webhook', async () => {
    await offer(3, 1);
    expect(count(await offer(1, 1, 'b')).turns).toBe(1);
  });

  it('share one rate, whatever lane they stand in', async () => {
    await offer(1, 1);
    const as = { rateLimitPerSecond: 1 };
    const others = [await bench.enter('a', 'retry', 1, as), await bench.enter('a', 'slow', 1, as)];
    expect(others.map((each) => count(each).waiting)).toEqual([1, 1]);
    await bench.pass(2_000);
    expect(others.map((each) => count(each).turns)).toEqual([1, 1]);
  });

  it('keep their rate by the schedule when a timer is late', async () => {
    const all = await offer(100, 50);
    bench.time.jump(60);
    await bench.pass(1);
    // Due at 20, 40 and 60 ms.
    expect(count(all).turns).toBe(4);
  });

  it('are made when their time comes in the moment in which they enter', async () => {
    await bench.finish(await offer(1, 4));
    await bench.pass(249);
    // The gate is asked twice, and the clock runs on in between.
    let asked = 0;
    bench.circuits.get = () => {
      asked += 1;
      if (asked === 2) bench.time.jump(1);
      return undefined;
    };
    const second = await offer(1, 4);
    expect(count(second)).toMatchObject({ turns: 1, waiting: 0 });
  });

  it('make up for 200 ms at most, so that a long stall ends in no burst', async () => {
    const all = await offer(100, 100);
    bench.time.jump(500);
    await bench.pass(1);
    // One in time, then those of the last 200 ms.
    expect(count(all).turns).toBeLessThanOrEqual(1 + 22);
  });
});

describe('attempts of a webhook with a rate limit that cannot wait here', () => {
  it('are deferred, and those that wait are those of the next half minute', async () => {
    const all = await offer(100, 1);
    expect(count(all)).toMatchObject({ turns: 1, waiting: 30, deferred: 69 });
  });

  it('get turns right behind those that wait, one by one at the rate', async () => {
    const all = await offer(431, 1);
    const turns = turnsOf(all, sinceMs);
    expect(turns).toHaveLength(400);
    expect(turns[0]).toBeLessThanOrEqual(33_000);
    expect(turns.slice(1).map((turn, n) => turn - (turns[n] ?? 0))).toEqual(Array(399).fill(1_000));
  });

  it('do not drive those away that waited here before them', async () => {
    const all = await offer(100, 1);
    await passFinishing(all, 30_500, 100);
    expect(count(all).turns).toBe(31);
  });

  it('keep their turn when they come back too early, and take it when it is near', async () => {
    const turnAtMs = EPOCH_MS + sinceMs + 60_000;
    const as = { rateLimitPerSecond: 1, turnAtMs };
    const [early] = await bench.enter('a', 'first', 1, as);
    expect(early?.admission).toEqual({ kind: 'defer', because: 'turn', turnAtMs });
    await bench.pass(58_000);
    const [near] = await bench.enter('a', 'first', 1, as);
    expect(near?.admission?.kind).toBe('turn');
  });

  it('stand in front of what was never deferred', async () => {
    const all = await offer(60, 1);
    const [turnAtMs = 0] = turnsOf(all, sinceMs).map((ms) => EPOCH_MS + sinceMs + ms);
    await passFinishing(all, 29_000, 100);
    const [back] = await bench.enter('a', 'first', 1, { rateLimitPerSecond: 1, turnAtMs });
    const [fresh] = await offer(1, 1);
    expect([back?.admission, fresh?.admission?.kind]).toEqual([undefined, 'defer']);
  });

  it('are paced as well below one in a second', async () => {
    const all = await offer(20, 0.2);
    expect(count(all)).toMatchObject({ turns: 1, waiting: 6, deferred: 13 });
    await passFinishing(all, 10_100, 100);
    expect(beginnings(all).slice(0, 3)).toEqual([0, 5_000, 10_000]);
  });
});
