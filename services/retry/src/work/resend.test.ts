import { beforeEach, describe, expect, test } from '@jest/globals';
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

/** Begins the resend of the failures of a webhook, which has one. */
async function begin(webhookId: string, companyId = 'comp_a'): Promise<string> {
  world.fail(1, webhookId, companyId);
  const id = `rsnd_${webhookId}`;
  const dueAtMs = world.timers.nowMs();
  await world.resends.insert(sampleResend(id, { webhookId, companyId, dueAtMs }));
  return id;
}

/** Begins resends to endpoints that never answer, and whose circuits are open. */
async function beginDead(count: number, companyId: string): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const webhookId = `wh_${companyId}_${String(n)}`;
    world.openCircuits.add(webhookId);
    await begin(webhookId, companyId);
  }
}

const isDead = (id: string): boolean =>
  world.openCircuits.has(world.deliveries.get(id)?.webhookId ?? '');

function dispatchToHealthy(): void {
  world.dispatch = (id) => {
    if (!isDead(id)) world.settle(id, true);
  };
}

const statusOf = (id: string) => world.running.get(id)?.status;
const sent = (): Set<string> => new Set(world.sends.flat());

describe('resends to dead endpoints', () => {
  beforeEach(dispatchToHealthy);

  test('leave the slots to others: twenty companies with twenty each delay another one by seconds', async () => {
    const workers = [world.worker(), world.worker()];
    for (let n = 0; n < 20; n += 1) await beginDead(20, `comp_${String(n)}`);
    await world.run(SECOND_MS, ...workers);
    const id = await begin('wh_healthy', 'comp_z');
    await world.run(4 * SECOND_MS, ...workers);
    expect(statusOf(id)).toBe('done');
    await world.run(30 * SECOND_MS, ...workers);
    expect(sent().size).toBe(401);
  });

  test('leave room for a healthy one of the same company', async () => {
    const worker = world.worker();
    await beginDead(50, 'comp_a');
    await world.run(MINUTE_MS, worker);
    const id = await begin('wh_healthy');
    await world.run(4 * SECOND_MS, worker);
    expect(statusOf(id)).toBe('done');
  });

  test('are claimed by nobody while they wait', async () => {
    await beginDead(5, 'comp_a');
    await world.run(10 * SECOND_MS, world.worker());
    expect(sent().size).toBe(5);
    expect(world.claimed()).toEqual([]);
  });

  test('cost few statements, whichever process looks at them', async () => {
    let statements = 0;
    const counted = <T extends object>(target: T): T =>
      new Proxy(target, {
        get(object, name) {
          const found: unknown = Reflect.get(object, name);
          if (typeof found !== 'function') return found;
          return (...args: unknown[]) => {
            statements += 1;
            return Reflect.apply(found, object, args) as unknown;
          };
        },
      });
    const { resends, marks } = world;
    const stores = { resends: counted(resends), marks: counted(marks) };
    const workers = [1, 2, 3].map(() => world.worker(stores));
    await beginDead(40, 'comp_a');
    await world.run(HOUR_MS, ...workers);
    statements = 0;
    await world.run(HOUR_MS, ...workers);
    const claims = 3 * 3_600;
    // A look in ten minutes, which takes four statements and may end with one more claim.
    expect(statements - claims).toBeLessThan(40 * 7 * 6);
    expect(statements - claims).toBeGreaterThan(40 * 5 * 3);
  });
});

describe('the slots of a process', () => {
  /** The endpoints never answer, so a resend keeps its slot for two seconds. */
  beforeEach(() => {
    world.dispatch = () => undefined;
  });

  test('are twenty of one company at most, also when nobody else waits', async () => {
    for (let n = 0; n < 30; n += 1) await begin(`wh_${String(n)}`);
    const worker = world.worker();
    await world.run(SECOND_MS, worker);
    expect(world.claimed()).toHaveLength(20);
  });

  test('go to a company that has none first, even when others have waited for longer', async () => {
    for (let n = 0; n < 200; n += 1) await begin(`wh_${String(n)}`, `comp_${String(n % 20)}`);
    const worker = world.worker();
    await world.run(SECOND_MS, worker);
    // Some are left for a company that has none.
    expect(world.claimed()).toHaveLength(95);
    const id = await begin('wh_last', 'comp_z');
    await world.run(2 * SECOND_MS, worker);
    expect(world.claimed()).toContain(id);
  });

  test('are left after three seconds when others wait, also by a resend that gets on', async () => {
    const webhookIds = Array.from({ length: 21 }, (_, n) => `wh_${String(n + 2)}`);
    for (const webhookId of webhookIds) {
      world.fail(20, webhookId);
      await world.resends.insert(sampleResend(`rsnd_${webhookId}`, { webhookId }));
    }
    const worker = world.worker();
    for (let second = 0; second < 6; second += 1) {
      await world.run(SECOND_MS, worker);
      for (const page of world.sends) world.settle(page[second] ?? '', true);
    }
    // One page each, which is continued where it was left.
    expect(world.sends.map((page) => page.length)).toEqual(webhookIds.map(() => 20));
  });
});

describe('a resend', () => {
  test('is started once, even when it is claimed before the wake', async () => {
    const ids = world.fail(3);
    world.dispatch = () => undefined;
    const resend = sampleResend('rsnd_1');
    await world.resends.insert(resend);
    const worker = world.worker();
    await world.run(100, worker);
    worker.wake();
    await world.run(SECOND_MS, worker);
    for (const id of ids) world.settle(id, true);
    await world.runToEnd(worker);
    expect(world.sends).toEqual([ids]);
    expect(world.running.get('rsnd_1')).toMatchObject({ status: 'done', succeeded: 3 });
  });

  test('that fails is tried again', async () => {
    const id = await begin('wh_1');
    let isAway = true;
    const publish: typeof world.records.publish = (records) =>
      isAway ? Promise.reject(new Error('Kafka is away')) : world.records.publish(records);
    const worker = world.worker({ records: { publish } });
    await world.run(5 * SECOND_MS, worker);
    expect(statusOf(id)).toBe('running');
    isAway = false;
    await world.run(3 * SECOND_MS, worker);
    expect(statusOf(id)).toBe('done');
  });
});
