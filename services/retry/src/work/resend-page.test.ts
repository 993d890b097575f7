import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { sampleResend } from '../../../../test/support/memory/memory-resends.ts';
import {
  createResendHarness,
  HOUR_MS,
  MINUTE_MS,
  SECOND_MS,
  type ResendHarness,
} from '../../../../test/support/resends/resend-harness.ts';

let world: ResendHarness;

beforeEach(() => {
  world = createResendHarness();
});

const begin = (id = 'rsnd_1', page: string[] = []) =>
  world.resends.insert(sampleResend(id, { page }));
const stateOf = (id = 'rsnd_1') => world.running.get(id);
const done = (succeeded: number, failed = 0) => ({
  status: 'done',
  total: succeeded + failed,
  succeeded,
  failed,
  page: [],
});

/** Nothing that is published gets a result, until a test settles it. */
function deferAll(): void {
  world.dispatch = () => undefined;
}

describe('a page', () => {
  test('is published as the attempt after the last one, due now, keyed by the webhook', async () => {
    world.add('dlv_1', 'cancelled', 3);
    await begin();
    const published: OutgoingRecord[] = [];
    const publish: typeof world.records.publish = (records) => {
      published.push(...records);
      return world.records.publish(records);
    };
    const nowMs = world.timers.nowMs();
    await world.runToEnd(world.worker({ records: { publish } }));
    expect(published).toMatchObject([{ topic: 'due', key: 'wh_1' }]);
    expect(published.map(({ value }) => decodeRetryDue(value))).toMatchObject([
      { trigger: 'resend', attemptNumber: 4, dueAtMs: nowMs, companyId: 'comp_a' },
    ]);
  });

  test('counts a delivery that is no longer stored as failed', async () => {
    const [kept = ''] = world.fail(1);
    await begin('rsnd_1', ['dlv_gone', kept]);
    await world.runToEnd(world.worker());
    expect([world.sends, stateOf()]).toMatchObject([[[kept]], done(1, 1)]);
  });

  test('counts each result once, whenever and wherever it is seen', async () => {
    const ids = world.fail(6);
    deferAll();
    await begin();
    const workers = [world.worker(), world.worker()];
    for (const [n, id] of ids.entries()) {
      await world.run(n * MINUTE_MS, ...workers);
      world.settle(id, n % 3 > 0);
    }
    await world.runToEnd(...workers);
    expect(stateOf()).toMatchObject(done(4, 2));
  });
});

describe('a page that waits', () => {
  beforeEach(deferAll);

  /** Returns after how many seconds the page was read, within the time. */
  async function readsWithin(ms: number): Promise<number[]> {
    const beganMs = world.timers.nowMs();
    const seconds: number[] = [];
    const read: typeof world.marks.read = (...args) => {
      seconds.push(Math.round((world.timers.nowMs() - beganMs) / SECOND_MS));
      return world.marks.read(...args);
    };
    await world.run(ms, world.worker({ marks: { ...world.marks, read } }));
    return seconds;
  }

  test('is read at growing intervals, of a minute at most', async () => {
    world.fail(1);
    await begin();
    const seconds = await readsWithin(HOUR_MS);
    expect(seconds.length).toBeLessThan(80);
    const intervals = seconds.map((each, n) => each - (seconds[n - 1] ?? 0));
    expect(Math.max(...intervals)).toBe(60);
    expect(seconds.filter((each) => each <= 10).length).toBeGreaterThan(6);
  });

  test.each(['openCircuits', 'held'] as const)(
    'is read every ten minutes while nothing is to be expected: %s',
    async (why) => {
      world.fail(1);
      world[why].add('wh_1');
      await begin();
      await world.run(HOUR_MS, world.worker());
      const seconds = await readsWithin(HOUR_MS);
      expect(seconds.length).toBeGreaterThanOrEqual(5);
      expect(seconds.length).toBeLessThanOrEqual(7);
    },
  );

  test('is not read more often for the failures of probes', async () => {
    const ids = world.fail(100);
    world.openCircuits.add('wh_1');
    await begin();
    const worker = world.worker();
    for (const id of ids.slice(0, 60)) {
      await world.run(MINUTE_MS, worker);
      world.settle(id, false);
    }
    const seconds = await readsWithin(20 * MINUTE_MS);
    expect(seconds.length).toBeLessThanOrEqual(3);
  });

  test('reads only what has no result yet', async () => {
    const [first = '', ...others] = world.fail(5);
    await begin();
    await world.run(MINUTE_MS, world.worker());
    for (const id of others) world.settle(id, true);
    await world.run(2 * MINUTE_MS, world.worker());
    const reads: (readonly string[])[] = [];
    const read: typeof world.marks.read = (companyId, ids) => {
      reads.push(ids);
      return world.marks.read(companyId, ids);
    };
    const asks: unknown[] = [];
    const ask: typeof world.marks.ask = (resend) => Promise.resolve(void asks.push(resend));
    await world.run(5 * MINUTE_MS, world.worker({ marks: { ...world.marks, read, ask } }));
    expect(new Set(reads.flat())).toEqual(new Set([first]));
    expect(asks).toEqual([]);
  });

  test('is noticed within seconds when its endpoint was slow for seconds', async () => {
    const ids = world.fail(3);
    await begin();
    const worker = world.worker();
    for (const id of ids) {
      await world.run(5 * SECOND_MS, worker);
      world.settle(id, true);
    }
    await world.run(4 * SECOND_MS, worker);
    expect(stateOf()).toMatchObject(done(3));
  });

  test('is not published again by the process that continues it', async () => {
    const ids = world.fail(3);
    await begin();
    await world.run(10 * SECOND_MS, world.worker());
    await world.run(MINUTE_MS, world.worker());
    expect(world.sends).toEqual([ids]);
  });

  test('is read and published as usual after a process whose clock was an hour ahead', async () => {
    world.fail(1);
    await begin();
    await world.run(10 * SECOND_MS, world.worker());
    const { progress } = stateOf() ?? {};
    for (const time of ['publishedAtMs', 'beganAtMs', 'movedAtMs'] as const) {
      if (progress) progress[time] += HOUR_MS;
    }
    const seconds = await readsWithin(5 * MINUTE_MS);
    expect(seconds.length).toBeLessThan(30);
    expect(world.sends).toHaveLength(2);
  });

  test.each([
    ['two minutes', 120, []],
    ['four minutes while its endpoint fails', 240, ['openCircuits']],
  ] as const)('is published again after %s, and not before', async (_when, seconds, why) => {
    const [id = ''] = world.fail(1);
    for (const each of why) world[each].add('wh_1');
    await begin();
    await world.run(seconds * SECOND_MS, world.worker());
    expect(world.sends).toEqual([[id]]);
    await world.run(seconds * SECOND_MS, world.worker());
    expect(world.sends).toEqual([[id], [id]]);
  });

  test.each([
    ['', []],
    [', also when its circuit opened before', ['wh_1']],
  ])(
    'gets no copy while it is on hold, and one within a second after its end%s',
    async (_when, open) => {
      const [id = ''] = world.fail(1);
      for (const each of open) world.openCircuits.add(each);
      await begin();
      await world.run(HOUR_MS, world.worker());
      const before = world.sends.length;
      world.held.add('wh_1');
      await world.run(3 * HOUR_MS, world.worker());
      expect(world.sends).toHaveLength(before);
      world.held.clear();
      await world.resends.continueHeld('comp_a', 'wh_1', world.timers.nowMs());
      await world.run(SECOND_MS, world.worker());
      expect(world.sends.slice(before)[0]).toEqual([id]);
    },
  );

  test('is not sent at all while it is on hold from the beginning, nor is another webhook continued', async () => {
    world.fail(1);
    world.held.add('wh_1');
    await begin();
    await world.run(HOUR_MS, world.worker());
    await world.resends.continueHeld('comp_a', 'wh_2', world.timers.nowMs());
    expect(world.sends).toEqual([]);
    expect(stateOf()?.dueAtMs).toBeGreaterThan(world.timers.nowMs());
  });

  test('gets fewer and fewer copies while its endpoint fails', async () => {
    world.fail(500);
    world.openCircuits.add('wh_1');
    await begin();
    await world.run(12 * HOUR_MS, world.worker());
    expect(world.sends.length).toBeGreaterThan(6);
    expect(world.sends.length).toBeLessThan(12);
  });

  test('is waited for without end when it is of one webhook', async () => {
    const [id = ''] = world.fail(1);
    world.openCircuits.add('wh_1');
    await begin();
    await world.run(20 * HOUR_MS, world.worker());
    expect(stateOf()).toMatchObject({ status: 'running', failed: 0 });
    world.settle(id, true);
    await world.run(11 * MINUTE_MS, world.worker());
    expect(stateOf()).toMatchObject(done(1));
  });
});

describe('a delivery that another resend is sending', () => {
  let id = '';

  beforeEach(async () => {
    [id = ''] = world.fail(1);
    await world.resends.insert(sampleResend('rsnd_0', { webhookId: 'wh_0', dueAtMs: Infinity }));
    await world.marks.ask(sampleResend('rsnd_0', { page: [id] }));
  });

  test.each([
    ['is awaited, and not sent again when the other one delivers it', true, 8],
    ['is sent when the other one fails', false, 9],
  ])('%s', async (_what, isSuccess, attemptCount) => {
    await begin();
    await world.run(MINUTE_MS, world.worker());
    expect(world.sends).toEqual([]);
    world.settle(id, isSuccess);
    await world.run(2 * MINUTE_MS, world.worker());
    expect(world.sends).toEqual(isSuccess ? [] : [[id]]);
    expect(stateOf()).toMatchObject(done(1));
    expect(world.deliveries.get(id)?.attemptCount).toBe(attemptCount);
  });

  test('is sent when the other one has ended without it', async () => {
    await world.resends.finish(sampleResend('rsnd_0'), 5);
    await begin();
    await world.run(MINUTE_MS, world.worker());
    expect([world.sends, stateOf()]).toMatchObject([[[id]], done(1)]);
  });

  test('is not sent for a request that was refused because of the other one', async () => {
    await world.resends.insert(sampleResend('rsnd_1', { afterId: id, beforeId: id, page: [id] }));
    await world.run(SECOND_MS, world.worker());
    expect([world.sends, stateOf()]).toMatchObject([[], done(0, 1)]);
  });
});
