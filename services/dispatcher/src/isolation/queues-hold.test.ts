import { beforeEach, describe, expect, it } from '@jest/globals';
import { MAX_HOLD_MS } from '@posthorn/domain/delivery/schedule.ts';
import {
  count,
  createQueueHarness,
  type Entered,
  EPOCH_MS,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';
import { NO_RATE } from './learned-rate.ts';
import { MAX_IDLE_ENDPOINTS } from './remembered-endpoints.ts';

let harness: QueueHarness;

beforeEach(() => {
  harness = createQueueHarness();
});

/** Ends one attempt with a 429 that asks for a pause. */
async function hold(retryAfterMs: number, id = 'a'): Promise<void> {
  const one = await harness.enter(id, 'first', 1);
  await harness.finish(one, { outcome: 'http_429', statusCode: 429, retryAfterMs });
}

describe('an endpoint that asks for a pause', () => {
  it('gets nothing during it, and everything that waited after it', async () => {
    await hold(2_000);
    const all = [
      ...(await harness.enter('a', 'first', 2)),
      ...(await harness.enter('a', 'retry', 2)),
      ...(await harness.enter('a', 'slow', 2)),
    ];
    await harness.pass(1_999);
    expect(count(all)).toMatchObject({ started: 0, waiting: 6 });
    await harness.pass(5_000);
    expect(count(all).started).toBe(6);
  });

  it('may ask with a 503', async () => {
    const one = await harness.enter('a', 'first', 1);
    await harness.finish(one, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 2_000 });
    expect(count(await harness.enter('a', 'first', 1)).waiting).toBe(1);
  });

  it('does not delay another endpoint of the same company', async () => {
    const as = { companyId: 'one' };
    const held = await harness.enter('a', 'first', 1, as);
    await harness.finish(held, { outcome: 'http_429', statusCode: 429, retryAfterMs: 2_000 });
    expect(count(await harness.enter('b', 'first', 1, as)).started).toBe(1);
  });

  it('is reported, for later owners of the webhook', async () => {
    await hold(90_000);
    expect(harness.holds).toEqual([['a', 90_000]]);
  });

  it('keeps the longer of two pauses', async () => {
    const [long, short] = await harness.enter('a', 'first', 2);
    const report = { outcome: 'http_429', statusCode: 429 } as const;
    await harness.finish(long ? [long] : [], { ...report, retryAfterMs: 9_000 });
    await harness.finish(short ? [short] : [], { ...report, retryAfterMs: 1_000 });
    const next = await harness.enter('a', 'first', 1);
    await harness.pass(8_900);
    expect(count(next).waiting).toBe(1);
    expect(harness.holds).toHaveLength(1);
  });

  it('defers attempts that would wait longer than half a minute to the end of the pause', async () => {
    await hold(600_000);
    const endsMs = EPOCH_MS + harness.time.nowMs() + 600_000;
    const [one] = await harness.enter('a', 'first', 1);
    expect(one?.admission).toMatchObject({ kind: 'defer', because: 'hold' });
    if (one?.admission?.kind !== 'defer') throw new Error('it was not deferred');
    expect(one.admission.reservedAtMs).toBeGreaterThanOrEqual(endsMs);
    expect(one.admission.reservedAtMs).toBeLessThan(endsMs + 1_000);
  });

  it('evicts attempts that waited for a slot when the pause is long', async () => {
    const all = await harness.enter('a', 'first', 40);
    const report = { outcome: 'http_429', statusCode: 429, retryAfterMs: 600_000 } as const;
    await harness.finish(all.slice(0, 1), report);
    expect(count(all)).toMatchObject({ started: 16, waiting: 0, deferred: 24 });
  });
});

describe('an attempt that has a slot when the pause is asked for', () => {
  it('does not begin, and has to enter again', async () => {
    harness = createQueueHarness({ begins: false });
    const [asks, late] = await harness.enter('a', 'first', 2);
    expect(asks?.slot?.begin()).toBe(true);
    const report = { outcome: 'http_429', statusCode: 429, retryAfterMs: 1_000 } as const;
    await harness.finish(asks ? [asks] : [], report);
    expect(late?.slot?.begin()).toBe(false);
    await harness.finish(late ? [late] : [], null);
    expect([harness.queues.running(), harness.unreported()]).toEqual([0, 0]);
    await harness.pass(1_000);
    const [again] = await harness.enter('a', 'first', 1);
    await harness.pass(1_000);
    expect(again?.slot?.begin()).toBe(true);
  });

  it('does not begin when the pause is that of a former owner', async () => {
    harness = createQueueHarness({ begins: false });
    const [late] = await harness.enter('a', 'first', 1);
    await harness.inheritPauses(['a'], 500);
    expect(late?.slot?.begin()).toBe(false);
    harness.time.jump(500);
    expect(late?.slot?.begin()).toBe(true);
  });
});

describe('a pause that a former owner was asked for', () => {
  it('is kept by the new owner, for endpoints that it knows or does not know', async () => {
    await harness.finish(await harness.enter('known', 'first', 1));
    await harness.inheritPauses(['known', 'new'], 2_000);
    const all = [
      ...(await harness.enter('known', 'first', 1)),
      ...(await harness.enter('new', 'first', 1)),
    ];
    await harness.pass(1_999);
    expect(count(all).waiting).toBe(2);
    await harness.pass(1);
    expect(count(all).started).toBe(2);
  });

  it('does not shorten a longer pause that is known here', async () => {
    await hold(9_000);
    await harness.inheritPauses(['a'], 1_000);
    const one = await harness.enter('a', 'first', 1);
    await harness.pass(8_000);
    expect(count(one).waiting).toBe(1);
  });

  it('holds for an hour at most, whatever the clock of the former owner said', async () => {
    await harness.finish(await harness.enter('known', 'first', 1));
    await harness.inheritPauses(['known', 'new'], 3 * MAX_HOLD_MS);
    harness.time.jump(MAX_HOLD_MS - 1);
    expect(count(await harness.enter('known', 'first', 1)).waiting).toBe(1);
    harness.time.jump(1);
    expect(count(await harness.enter('known', 'retry', 1)).started).toBe(1);
    expect(count(await harness.enter('new', 'first', 1)).started).toBe(1);
  });

  it('is forgotten with its partition, idle endpoints too', async () => {
    await harness.finish(await harness.enter('known', 'first', 1));
    await harness.inheritPauses(['known', 'new'], 9_000);
    expect([harness.handover.inherited(), harness.queues.endpoints().size]).toEqual([2, 1]);
    await harness.handover.own(new Set());
    expect([harness.handover.inherited(), harness.queues.endpoints().size]).toEqual([0, 0]);
  });

  it('applies to attempts that already wait for a slot', async () => {
    const all = await harness.enter('a', 'first', 17);
    await harness.inheritPauses(['a'], 2_000);
    await harness.finish(all.slice(0, 16));
    expect(count(all.slice(16)).waiting).toBe(1);
    await harness.pass(2_000);
    expect(count(all.slice(16)).started).toBe(1);
  });
});

it('keeps the pause of an idle endpoint, however many endpoints are known', async () => {
  harness = createQueueHarness({ limits: { fast: 2 * MAX_IDLE_ENDPOINTS } });
  const crowd: Promise<Entered[]>[] = [];
  for (let n = 0; n <= MAX_IDLE_ENDPOINTS; n += 1) crowd.push(harness.enter(`c${n}`, 'first', 1));
  await Promise.all(crowd);
  await harness.finish(await harness.enter('healthy', 'first', 1));
  expect(harness.queues.endpoints().size).toBe(MAX_IDLE_ENDPOINTS + 1);
  await hold(20_000);
  await harness.finish(await harness.enter('b', 'first', 1, { rateLimitPerSecond: 1 }));
  expect(count(await harness.enter('a', 'first', 1)).waiting).toBe(1);
  expect(count(await harness.enter('b', 'first', 1, { rateLimitPerSecond: 1 })).waiting).toBe(1);
});

describe('a webhook whose URL is changed', () => {
  const NEW = { url: 'https://two.example/' };

  it('starts without the pause of the old URL, and what waits for that pause is made too', async () => {
    await hold(20_000);
    const waiting = await harness.enter('a', 'first', 2);
    const moved = await harness.enter('a', 'retry', 1, NEW);
    await harness.nextLoop();
    expect(count([...waiting, ...moved]).started).toBe(3);
  });

  it('has a new pace, latency and limit, and learns nothing from requests to the old URL', async () => {
    const [slow, asks] = await harness.enter('a', 'first', 2);
    await harness.pass(1_100);
    const refusal = { outcome: 'http_429', statusCode: 429, retryAfterMs: 600_000 } as const;
    await harness.finish(slow ? [slow] : [], refusal);
    const moved = await harness.enter('a', 'first', 3, NEW);
    await harness.pass(200);
    await harness.finish(asks ? [asks] : [], refusal);
    expect(count([...moved, ...(await harness.enter('a', 'first', 2, NEW))]).started).toBe(5);
    const [endpoint] = harness.queues.endpoints().values();
    const anew = { pausedUntilMs: 0, slowUntilMs: 0, overdue: 0, quickestMs: 0, bookedUntilMs: 0 };
    expect(endpoint).toMatchObject({ ...anew, rate: NO_RATE, running: { first: 5 } });
    expect(harness.holds).toEqual([['a', 600_000]]);
  });

  it('inherits no pause of another URL', async () => {
    await harness.finish(await harness.enter('known', 'first', 1, NEW));
    await harness.inheritPauses(['known', 'new'], 9_000);
    expect(count(await harness.enter('known', 'first', 1, NEW)).started).toBe(1);
    expect(count(await harness.enter('new', 'first', 1, NEW)).started).toBe(1);
    expect(count(await harness.enter('new', 'first', 1)).waiting).toBe(1);
  });
});
