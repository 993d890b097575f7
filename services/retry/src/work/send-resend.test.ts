import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Resend } from '@posthorn/domain/resend.ts';
import { sampleResend } from '../../../../test/support/memory/memory-resends.ts';
import {
  createResendHarness,
  HOUR_MS,
  MINUTE_MS,
  type ResendHarness,
  SECOND_MS,
} from '../../../../test/support/resends/resend-harness.ts';
import { createPageBudget } from './page-budget.ts';

describe('send resend', () => {
  let world: ResendHarness;
  /** Endpoints that fail: attempts to them are deferred. */
  let dead: Set<string>;

  beforeEach(() => {
    [world, dead] = [createResendHarness(), new Set()];
    world.dispatch = (id) => {
      if (!dead.has(world.deliveries.get(id)?.webhookId ?? '')) world.settle(id, true);
    };
  });

  const begin = (overrides: Partial<Resend> = {}) =>
    world.resends.insert(sampleResend('rsnd_1', overrides));
  const beginOfApp = () => begin({ appId: 'app_1', webhookId: null, total: 9 });
  const stateOf = () => world.running.get('rsnd_1');
  const shown = () => world.resends.findShown('comp_a', 'rsnd_1');
  const sizes = (): number[] => world.sends.map((page) => page.length);
  const done = (succeeded: number, failed = 0) => ({
    status: 'done',
    total: succeeded + failed,
    succeeded,
    failed,
  });

  describe('a resend of a webhook', () => {
    test('sends pages of 500, oldest first, and counts the result of each delivery', async () => {
      const ids = world.fail(1_200);
      world.dispatch = (id) => {
        world.settle(id, !id.endsWith('7'));
      };
      await begin();
      await world.runToEnd(world.worker());
      expect(sizes()).toEqual([500, 500, 200]);
      expect(world.sends.flat()).toEqual(ids);
      expect(stateOf()).toMatchObject(done(1_080, 120));
      expect(world.claimed()).toEqual([]);
    });

    test('sends its pages without a pause while the endpoint works', async () => {
      world.fail(5_000);
      await begin();
      await world.run(SECOND_MS, world.worker());
      expect(stateOf()).toMatchObject(done(5_000));
    });

    test('has pages of what the rate limit allows in two seconds', async () => {
      world.fail(5);
      await begin();
      await world.runToEnd(world.worker({ targetOf: world.limitedTo(1) }));
      expect(sizes()).toEqual([2, 2, 1]);
    });

    describe('that looks for a few among many', () => {
      /** Each page looks at one delivery, and only the last one is wanted. */
      function lookingForLast(ids: readonly string[]) {
        const nextPage: typeof world.resends.nextPage = async (resend) => {
          const { ids: next } = await world.resends.nextPage(resend, 1);
          const isWanted = next[0] === undefined || next[0] === ids.at(-1);
          return { ids: isWanted ? next : [], lookedTo: next[0] ?? null };
        };
        return world.worker({ resends: { ...world.resends, nextPage } });
      }

      test('goes on behind a page without any', async () => {
        const ids = world.fail(5);
        await begin();
        await world.runToEnd(lookingForLast(ids));
        expect(world.sends).toEqual([ids.slice(-1)]);
        expect(stateOf()).toMatchObject(done(1));
      });

      test('is aborted between two pages', async () => {
        const ids = world.fail(5);
        await begin({ total: 5 });
        await world.resends.askToAbort('comp_a', 'rsnd_1', world.timers.nowMs());
        await world.runToEnd(lookingForLast(ids));
        expect(world.sends).toEqual([]);
        expect(stateOf()).toMatchObject({ status: 'aborted', total: 5 });
      });
    });

    test('without failed deliveries is done at once', async () => {
      world.add('dlv_1', 'delivered');
      await begin();
      await world.runToEnd(world.worker());
      expect([world.sends, stateOf()]).toMatchObject([[], done(0)]);
    });
  });

  describe('a resend of an app', () => {
    test('sends what failed at each of its webhooks, in pages of one webhook', async () => {
      const failed = [
        ...world.fail(700, 'wh_1'),
        ...world.fail(2, 'wh_2'),
        ...world.fail(0, 'wh_3'),
      ];
      await beginOfApp();
      await world.runToEnd(world.worker());
      expect(world.sends.flat().sort()).toEqual(failed.sort());
      expect(sizes().sort()).toEqual([2, 200, 500]);
      expect(stateOf()).toMatchObject(done(702));
      // Neither parts nor claims are left.
      expect([world.running.size, world.claimed()]).toEqual([1, []]);
    });

    test('leaves out disabled webhooks', async () => {
      const sent = world.fail(1, 'wh_1');
      world.fail(3, 'wh_off');
      world.webhooks.delete('wh_off');
      await beginOfApp();
      await world.runToEnd(world.worker());
      expect([world.sends, stateOf()]).toMatchObject([[sent], done(1)]);
    });

    test('sends to 230 webhooks, ten at a time', async () => {
      const ids = Array.from({ length: 230 }, (_, n) => `wh_${String(n + 100)}`);
      const failed = ids.flatMap((id) => world.fail(1, id));
      await beginOfApp();
      await world.runToEnd(world.worker());
      expect(world.sends.flat().sort()).toEqual(failed.sort());
      expect(stateOf()).toMatchObject(done(230));
    });

    test('without failed deliveries is done at once', async () => {
      world.fail(0, 'wh_1');
      await beginOfApp();
      await world.runToEnd(world.worker());
      expect([world.sends, stateOf()]).toMatchObject([[], done(0)]);
    });

    test('has pages of what the limit of each webhook allows', async () => {
      world.fail(3, 'wh_1');
      world.fail(3, 'wh_2');
      await beginOfApp();
      await world.runToEnd(world.worker({ targetOf: world.limitedTo(1, 'wh_1') }));
      expect(sizes().sort()).toEqual([1, 2, 3]);
    });
  });

  describe('a dead endpoint of an app', () => {
    let lost: string[];

    beforeEach(async () => {
      lost = world.fail(600, 'wh_dead');
      dead.add('wh_dead');
      world.openCircuits.add('wh_dead');
      await beginOfApp();
    });

    test('delays no other endpoint and is given up after five minutes', async () => {
      world.fail(700, 'wh_1');
      world.fail(1, 'wh_2');
      const workers = [world.worker(), world.worker()];
      await world.run(10 * SECOND_MS, ...workers);
      expect(await shown()).toMatchObject({ status: 'running', succeeded: 701, failed: 0 });
      expect(world.claimed()).toEqual([]);
      await world.run(285 * SECOND_MS, ...workers);
      expect(stateOf()).toMatchObject({ status: 'running' });
      await world.run(10 * SECOND_MS, ...workers);
      expect(stateOf()).toMatchObject(done(701, 600));
      // What was given up may be sent again and carries no open mark.
      expect(world.deliveries.get(lost[0] ?? '')).toMatchObject({
        status: 'exhausted',
        attemptCount: 7,
        mark: { state: 'failed' },
      });
      expect(world.deliveries.get(lost[599] ?? '')?.mark).toBeNull();
    });

    test('counts all that was not sent as failed, also more than the API counts', async () => {
      const resends = { ...world.resends, count: () => Promise.resolve(10) };
      await world.run(6 * MINUTE_MS, world.worker({ resends }));
      expect(stateOf()).toMatchObject(done(0, 600));
    });

    test('is not given up while its circuit is closed', async () => {
      world.openCircuits.clear();
      await world.run(10 * MINUTE_MS, world.worker());
      expect(stateOf()).toMatchObject({ status: 'running' });
    });

    test('is given up five minutes after its last success', async () => {
      await world.run(2 * MINUTE_MS, world.worker());
      world.settle(lost[0] ?? '', true);
      await world.run(4 * MINUTE_MS, world.worker());
      expect(stateOf()).toMatchObject({ status: 'running' });
      await world.run(4 * MINUTE_MS, world.worker());
      expect(stateOf()).toMatchObject(done(1, 599));
    });

    test('is given up after five minutes when the process before has seen a success in the future', async () => {
      await world.run(10 * SECOND_MS, world.worker());
      const { progress } = world.running.get('rsnd_1/wh_dead') ?? {};
      if (progress) progress.successAtMs += HOUR_MS;
      await world.run(6 * MINUTE_MS, world.worker());
      expect(stateOf()).toMatchObject(done(0, 600));
    });

    test('is not given up while it is on hold, and has five minutes after its end', async () => {
      const worker = world.worker();
      await world.run(2 * MINUTE_MS, worker);
      world.held.add('wh_dead');
      await world.run(HOUR_MS, worker);
      expect(sizes()).toEqual([500]);
      world.held.clear();
      // The end is noticed within ten minutes. What dispatchers dropped meanwhile is published then.
      const copies = (): number => world.sends.length - 1;
      for (let n = 0; n < 600 && copies() === 0; n += 1) await world.run(SECOND_MS, worker);
      expect(copies()).toBe(1);
      await world.run(295 * SECOND_MS, worker);
      expect(stateOf()).toMatchObject({ status: 'running' });
      await world.run(20 * SECOND_MS, worker);
      expect(stateOf()).toMatchObject(done(0, 600));
    });

    test('is not given up while nobody knows whether its circuit is open', async () => {
      const read = () => Promise.reject(new Error('Redis is away'));
      await world.run(10 * MINUTE_MS, world.worker({ circuits: { read } }));
      expect(stateOf()).toMatchObject({ status: 'running' });
      await world.run(2 * MINUTE_MS, world.worker());
      expect(stateOf()).toMatchObject(done(0, 600));
    });

    test('that works again is sent everything', async () => {
      await world.run(2 * MINUTE_MS, world.worker());
      dead.clear();
      world.openCircuits.clear();
      for (const id of lost) world.settle(id, true);
      await world.run(2 * MINUTE_MS, world.worker());
      expect(stateOf()).toMatchObject(done(600));
      expect(sizes()).toEqual([500, 100]);
    });

    test('does not make others search its webhooks for failures again and again', async () => {
      for (let n = 0; n < 1_000; n += 1) world.webhooks.add(`wh_e${String(n)}`);
      let searches = 0;
      const nextPage: typeof world.resends.nextPage = (resend, limit) => {
        searches += 1;
        return world.resends.nextPage(resend, limit);
      };
      const resends = { ...world.resends, nextPage };
      const workers = [1, 2].map(() => world.worker({ resends }));
      await world.run(4 * MINUTE_MS, ...workers);
      expect(searches).toBeLessThan(1_010);
    });
  });

  describe('a resend that a client aborts', () => {
    const abort = () => world.resends.askToAbort('comp_a', 'rsnd_1', world.timers.nowMs());

    test('sends no further page, and counts the one under way', async () => {
      const ids = world.fail(5);
      await begin({ total: 5 });
      world.dispatch = (id) => {
        void abort();
        world.settle(id, id !== ids[1]);
      };
      await world.runToEnd(world.worker({ targetOf: world.limitedTo(1) }));
      expect(world.sends.flat()).toEqual(ids.slice(0, 2));
      expect(stateOf()).toMatchObject({ status: 'aborted', total: 5, succeeded: 1, failed: 1 });
      expect(world.deliveries.get(ids[2] ?? '')?.mark).toBeNull();
    });

    test('before it began sends nothing', async () => {
      world.fail(1);
      await begin({ total: 1 });
      await abort();
      await world.runToEnd(world.worker());
      expect(world.sends).toEqual([]);
      expect(stateOf()).toMatchObject({ status: 'aborted', total: 1, succeeded: 0, failed: 0 });
    });

    test('after everything was sent is done', async () => {
      world.fail(1);
      await begin({ total: 1 });
      world.dispatch = (id) => {
        void abort();
        world.settle(id, true);
      };
      await world.runToEnd(world.worker());
      expect(stateOf()).toMatchObject(done(1));
    });

    test('ends after twenty seconds, also when it was to wait for minutes, and frees what was not sent', async () => {
      const [first = '', second = ''] = world.fail(5);
      dead.add('wh_1');
      world.openCircuits.add('wh_1');
      await begin({ total: 5 });
      await world.run(HOUR_MS, world.worker());
      world.settle(first, false);
      await abort();
      await world.run(18 * SECOND_MS, world.worker());
      expect(stateOf()).toMatchObject({ status: 'running' });
      await world.run(5 * SECOND_MS, world.worker());
      expect(stateOf()).toMatchObject({ status: 'aborted', total: 5, succeeded: 0, failed: 1 });
      expect(world.deliveries.get(second)?.mark).toMatchObject({ state: 'failed' });
      await world.run(HOUR_MS, world.worker());
      expect(world.sends.length).toBeLessThan(10);
    });

    test('counts an attempt that was recorded while the marks were freed', async () => {
      const [first = ''] = world.fail(2);
      dead.add('wh_1');
      await begin({ total: 2 });
      const free: typeof world.marks.free = async (...args) => {
        world.settle(first, true);
        await world.marks.free(...args);
      };
      await world.run(MINUTE_MS, world.worker());
      await abort();
      await world.run(MINUTE_MS, world.worker({ marks: { ...world.marks, free } }));
      expect(stateOf()).toMatchObject({ status: 'aborted', total: 2, succeeded: 1, failed: 0 });
    });

    test('and is of an app begins no further part, and ends within 25 seconds', async () => {
      for (const n of [1, 2, 3]) world.fail(4, `wh_${String(n)}`);
      dead.add('wh_2');
      await beginOfApp();
      world.dispatch = (id) => {
        void abort();
        if (!dead.has(world.deliveries.get(id)?.webhookId ?? '')) world.settle(id, true);
      };
      await world.run(26 * SECOND_MS, world.worker({ targetOf: world.limitedTo(1) }));
      const { succeeded = 0 } = stateOf() ?? {};
      expect(stateOf()).toMatchObject({ status: 'aborted', failed: 0 });
      expect(succeeded).toBeGreaterThan(0);
      expect(succeeded).toBeLessThan(12);
      expect(world.running.size).toBe(1);
    });
  });
});

test('pages get smaller as the memory fills up, and never smaller than 20 [security]', () => {
  const budget = createPageBudget(800 * 2_000);
  const sizes = Array.from({ length: 10 }, () => {
    const size = budget.pageSize();
    budget.reserve(size);
    return size;
  });
  expect(sizes).toEqual([500, 500, 500, 250, 125, 62, 31, 20, 20, 20]);
});

test('memory that is released is there for the next page [security]', () => {
  const budget = createPageBudget(800 * 100);
  const release = budget.reserve(100);
  expect([budget.pageSize(), budget.usedBytes()]).toEqual([20, 80_000]);
  release();
  expect([budget.pageSize(), budget.usedBytes()]).toEqual([50, 0]);
});
