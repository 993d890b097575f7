import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import { createPageBudget } from './pages/resend-page-budget.ts';
import { createResendRunner, type ResendRunner, type RunResendsDeps } from './run-resends.ts';

let world: MemoryResends;
let leases: MemoryLeases;
/** Ids of the deliveries in each send, in order. */
let sends: string[][];
/** Called for every delivery that is published. */
let dispatch: (deliveryId: string) => void;
let nowMs: number;
let perSecond: number | null;

beforeEach(() => {
  [world, leases, sends, nowMs, perSecond] = [
    createMemoryResends(),
    createMemoryLeases(),
    [],
    0,
    null,
  ];
  dispatch = (id) => {
    world.settle(id, true);
  };
});

function runner(holder: string, overrides: Partial<RunResendsDeps> = {}): ResendRunner {
  return createResendRunner({
    pageBudget: createPageBudget(16_777_216),
    holder,
    resends: world.resends,
    marks: world.marks,
    leases,
    retryDueTopic: 'due',
    rateLimitOf: () => Promise.resolve(perSecond),
    circuits: { read: () => Promise.resolve(null) },
    isSuspended: () => Promise.resolve(false),
    records: { publish },
    nowMs: () => nowMs,
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
}

/** Runs one round, and everything that it starts. */
async function work({ tick, idle }: ResendRunner): Promise<void> {
  await tick();
  await idle();
}

function publish(records: readonly OutgoingRecord[]): Promise<void> {
  const ids = records.map(({ value }) => decodeRetryDue(value).messageId.slice('msg_'.length));
  if (ids.length > 0) sends.push(ids);
  for (const id of ids) dispatch(id);
  return Promise.resolve();
}

function fail(count: number): string[] {
  const ids = Array.from({ length: count }, (_, n) => `dlv_${String(n).padStart(5, '0')}`);
  for (const id of ids) world.add(id, 'exhausted');
  return ids;
}

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

describe('a resend of many', () => {
  test('sends pages of 500, oldest first, and counts the result of each delivery', async () => {
    const ids = fail(1_200);
    dispatch = (id) => {
      world.settle(id, !id.endsWith('7'));
    };
    await begin();
    await work(runner('a'));
    expect(sends.map((page) => page.length)).toEqual([500, 500, 200]);
    expect(sends.flat()).toEqual(ids);
    expect(stateOf()).toMatchObject(done(1_080, 120));
    expect(leases.holders.size).toBe(0);
  });

  test('publishes the attempt after the last one, due now, keyed by the webhook', async () => {
    world.add('dlv_1', 'cancelled', 3);
    await begin();
    nowMs = 77;
    const published: OutgoingRecord[] = [];
    const records = {
      publish: (given: readonly OutgoingRecord[]) => {
        published.push(...given);
        return publish(given);
      },
    };
    await work(runner('a', { records }));
    expect(published).toMatchObject([{ topic: 'due', key: 'wh_1' }]);
    expect(published.map(({ value }) => decodeRetryDue(value))).toMatchObject([
      { trigger: 'resend', attemptNumber: 4, dueAtMs: 77, companyId: 'comp_a' },
    ]);
  });

  test('has pages of what the rate limit allows in two seconds', async () => {
    fail(5);
    perSecond = 1;
    await begin();
    await work(runner('a'));
    expect(sends.map((page) => page.length)).toEqual([2, 2, 1]);
  });

  test('without failed deliveries is done at once', async () => {
    world.add('dlv_1', 'delivered');
    await begin();
    await work(runner('a'));
    expect([sends, stateOf()]).toMatchObject([[], done(0)]);
  });

  test('counts a delivery that is no longer stored as failed', async () => {
    const [kept = ''] = fail(1);
    await begin('rsnd_1', ['dlv_gone', kept]);
    await work(runner('a'));
    expect([sends, stateOf()]).toMatchObject([[[kept]], done(1, 1)]);
  });

  test('is started once, even when a round finds it before the wake', async () => {
    const ids = fail(3);
    dispatch = () => undefined;
    await begin();
    let beginnings = 0;
    const beginPage: typeof world.resends.beginPage = (...args) => {
      beginnings += 1;
      return world.resends.beginPage(...args);
    };
    const all = runner('a', { resends: { ...world.resends, beginPage } });
    const { wake } = all;
    const round = work(all);
    await eventually('the round has started', () => sends.length > 0);
    wake(sampleResend('rsnd_1'));
    const next = work(all);
    for (const id of ids) world.settle(id, true);
    await Promise.all([round, next]);
    expect([beginnings, sends, stateOf()]).toMatchObject([1, [ids], done(3)]);
  });
});

describe('a delivery that another resend is sending', () => {
  test('is awaited, and not sent again when the other one delivers it', async () => {
    const [id = ''] = fail(1);
    await world.marks.ask(sampleResend('rsnd_0', { page: [id] }));
    await begin();
    let reads = 0;
    const read: typeof world.marks.read = (...args) => {
      if ((reads += 1) === 2) world.settle(id, true);
      return world.marks.read(...args);
    };
    await work(runner('a', { marks: { ...world.marks, read } }));
    expect([sends, stateOf()]).toMatchObject([[], done(1)]);
    expect(world.deliveries.get(id)?.attemptCount).toBe(8);
  });

  test('is sent when the other one fails', async () => {
    const [id = ''] = fail(1);
    await world.marks.ask(sampleResend('rsnd_0', { page: [id] }));
    await begin();
    let reads = 0;
    const read: typeof world.marks.read = (...args) => {
      if ((reads += 1) === 2) world.settle(id, false);
      return world.marks.read(...args);
    };
    await work(runner('a', { marks: { ...world.marks, read } }));
    expect([sends, stateOf()]).toMatchObject([[[id]], done(1)]);
    expect(world.deliveries.get(id)?.attemptCount).toBe(9);
  });

  test('is sent once when two resends of the same span run at the same time', async () => {
    const ids = fail(40);
    await begin('rsnd_1');
    // `insert` refuses it. Versions before the unique span allowed it.
    world.running.set('rsnd_2', sampleResend('rsnd_2'));
    await Promise.all([work(runner('a')), work(runner('b'))]);
    expect(sends.flat().sort()).toEqual(ids);
    expect([stateOf('rsnd_1'), stateOf('rsnd_2')]).toMatchObject([done(40), done(40)]);
  });

  test('is not sent for a request that was refused because of the other one', async () => {
    const [id = ''] = fail(1);
    await world.marks.ask(sampleResend('rsnd_0', { page: [id] }));
    await world.resends.insert(sampleResend('rsnd_1', { afterId: id, beforeId: id, page: [id] }));
    await work(runner('a'));
    expect([sends, stateOf()]).toMatchObject([[], done(0, 1)]);
  });
});
