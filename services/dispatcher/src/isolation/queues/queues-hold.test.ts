import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  EPOCH_MS,
  type Entered,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';
import { MAX_IDLE_ENDPOINTS } from './queues.ts';

let bench: QueueBench;

beforeEach(() => {
  bench = createQueueBench();
});

/** One attempt is answered with a pause. */
async function hold(retryAfterMs: number, id = 'a'): Promise<void> {
  const one = await bench.enter(id, 'first', 1);
  await bench.finish(one, { outcome: 'http_429', statusCode: 429, retryAfterMs });
}

describe('an endpoint that asks for a pause', () => {
  it('gets nothing in it, and everything that waited after it', async () => {
    await hold(2_000);
    const all = [
      ...(await bench.enter('a', 'first', 2)),
      ...(await bench.enter('a', 'retry', 2)),
      ...(await bench.enter('a', 'slow', 2)),
    ];
    await bench.pass(1_999);
    expect(count(all)).toMatchObject({ turns: 0, waiting: 6 });
    await bench.pass(5_000);
    expect(count(all).turns).toBe(6);
  });

  it('may ask with a 503 as well', async () => {
    const one = await bench.enter('a', 'first', 1);
    await bench.finish(one, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 2_000 });
    expect(count(await bench.enter('a', 'first', 1)).waiting).toBe(1);
  });

  it('does not hold up another endpoint of the same company', async () => {
    const as = { companyId: 'one' };
    const held = await bench.enter('a', 'first', 1, as);
    await bench.finish(held, { outcome: 'http_429', statusCode: 429, retryAfterMs: 2_000 });
    expect(count(await bench.enter('b', 'first', 1, as)).turns).toBe(1);
  });

  it('is told to who owns the webhook later', async () => {
    await hold(90_000);
    expect(bench.holds).toEqual([['a', 90_000]]);
  });

  it('keeps the longer of two pauses', async () => {
    const [long, short] = await bench.enter('a', 'first', 2);
    const answer = { outcome: 'http_429', statusCode: 429 } as const;
    await bench.finish(long ? [long] : [], { ...answer, retryAfterMs: 9_000 });
    await bench.finish(short ? [short] : [], { ...answer, retryAfterMs: 1_000 });
    const next = await bench.enter('a', 'first', 1);
    await bench.pass(8_900);
    expect(count(next).waiting).toBe(1);
    expect(bench.holds).toHaveLength(1);
  });

  it('defers what would wait for longer than half a minute, to the end of the pause', async () => {
    await hold(600_000);
    const endsMs = EPOCH_MS + bench.time.nowMs() + 600_000;
    const [one] = await bench.enter('a', 'first', 1);
    expect(one?.admission).toMatchObject({ kind: 'defer', because: 'hold' });
    if (one?.admission?.kind !== 'defer') throw new Error('it was not deferred');
    expect(one.admission.turnAtMs).toBeGreaterThanOrEqual(endsMs);
    expect(one.admission.turnAtMs).toBeLessThan(endsMs + 1_000);
  });

  it('sends those away that waited for a place when the pause is a long one', async () => {
    const all = await bench.enter('a', 'first', 40);
    const answer = { outcome: 'http_429', statusCode: 429, retryAfterMs: 600_000 } as const;
    await bench.finish(all.slice(0, 1), answer);
    expect(count(all)).toMatchObject({ turns: 16, waiting: 0, deferred: 24 });
  });
});

describe('an attempt that had its turn already when the pause was asked for', () => {
  it('does not begin: it has to come again', async () => {
    bench = createQueueBench({ begins: false });
    const [asks, late] = await bench.enter('a', 'first', 2);
    expect(asks?.turn?.begin()).toBe(true);
    const answer = { outcome: 'http_429', statusCode: 429, retryAfterMs: 1_000 } as const;
    await bench.finish(asks ? [asks] : [], answer);
    expect(late?.turn?.begin()).toBe(false);
    await bench.finish(late ? [late] : [], null);
    expect([bench.queues.running(), bench.permits()]).toEqual([0, 0]);
    await bench.pass(1_000);
    const [again] = await bench.enter('a', 'first', 1);
    await bench.pass(1_000);
    expect(again?.turn?.begin()).toBe(true);
  });

  it('does not begin either when the pause is that of a former owner', async () => {
    bench = createQueueBench({ begins: false });
    const [late] = await bench.enter('a', 'first', 1);
    bench.queues.inheritHolds(new Map([['a', 500]]));
    expect(late?.turn?.begin()).toBe(false);
    bench.time.jump(500);
    expect(late?.turn?.begin()).toBe(true);
  });
});

describe('a pause that a former owner was asked for', () => {
  it('is kept by the new one, for endpoints that it knows and that it does not know', async () => {
    await bench.finish(await bench.enter('known', 'first', 1));
    bench.queues.inheritHolds(new Map(['known', 'new'].map((id) => [id, 2_000])));
    const all = [
      ...(await bench.enter('known', 'first', 1)),
      ...(await bench.enter('new', 'first', 1)),
    ];
    await bench.pass(1_999);
    expect(count(all).waiting).toBe(2);
    await bench.pass(1);
    expect(count(all).turns).toBe(2);
  });

  it('does not shorten one that is known here', async () => {
    await hold(9_000);
    bench.queues.inheritHolds(new Map([['a', 1_000]]));
    const one = await bench.enter('a', 'first', 1);
    await bench.pass(8_000);
    expect(count(one).waiting).toBe(1);
  });

  it('holds also those that wait for a place already', async () => {
    const all = await bench.enter('a', 'first', 17);
    bench.queues.inheritHolds(new Map([['a', 2_000]]));
    await bench.finish(all.slice(0, 16));
    expect(count(all.slice(16)).waiting).toBe(1);
    await bench.pass(2_000);
    expect(count(all.slice(16)).turns).toBe(1);
  });
});

it('keeps the pause of an endpoint that idles, however many endpoints are known', async () => {
  bench = createQueueBench({ limits: { fast: 2 * MAX_IDLE_ENDPOINTS } });
  const crowd: Promise<Entered[]>[] = [];
  for (let n = 0; n <= MAX_IDLE_ENDPOINTS; n += 1) crowd.push(bench.enter(`c${n}`, 'first', 1));
  await Promise.all(crowd);
  await bench.finish(await bench.enter('well', 'first', 1));
  expect(bench.queues.size()).toBe(MAX_IDLE_ENDPOINTS + 1);
  await hold(20_000);
  await bench.finish(await bench.enter('b', 'first', 1, { rateLimitPerSecond: 1 }));
  expect(count(await bench.enter('a', 'first', 1)).waiting).toBe(1);
  expect(count(await bench.enter('b', 'first', 1, { rateLimitPerSecond: 1 })).waiting).toBe(1);
});
