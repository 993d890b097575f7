import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../../test/support/memory/memory-leases.ts';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../../test/support/memory/memory-resends.ts';
import { createPageBudget } from './resend-page-budget.ts';
import { createResendRunner, type ResendRunner, type RunResendsDeps } from '../run-resends.ts';

const GIVE_UP_AFTER_MS = 300_000;

let world: MemoryResends;
let leases: MemoryLeases;
/** Ids of the deliveries in each send, in order. */
let sends: string[][];
let nowMs: number;
/** Endpoints that fail: attempts to them are deferred. */
let dead: Set<string>;
let openCircuits: Set<string>;

beforeEach(async () => {
  [world, leases, sends, nowMs] = [createMemoryResends(), createMemoryLeases(), [], 0];
  [dead, openCircuits] = [new Set(), new Set()];
  const appResend = { appId: 'app_1', webhookId: null };
  await world.resends.insert(sampleResend('rsnd_1', appResend));
});

function runner(holder: string, overrides: Partial<RunResendsDeps> = {}): ResendRunner {
  return createResendRunner({
    pageBudget: createPageBudget(16_777_216),
    holder,
    resends: world.resends,
    marks: world.marks,
    leases,
    retryDueTopic: 'due',
    rateLimitOf: () => Promise.resolve(null),
    circuits: { read: (webhookId) => Promise.resolve(openCircuits.has(webhookId) ? 1 : null) },
    isSuspended: () => Promise.resolve(false),
    records,
    nowMs: () => nowMs,
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
}

const records = {
  publish(records: readonly OutgoingRecord[]): Promise<void> {
    const ids = records.map(({ value }) => decodeRetryDue(value).messageId.slice('msg_'.length));
    if (ids.length > 0) sends.push(ids);
    for (const id of ids) if (!isDead(id)) world.settle(id, true);
    return Promise.resolve();
  },
};

const isDead = (id: string): boolean => dead.has(world.deliveries.get(id)?.webhookId ?? '');

/** Runs one round, and everything that it starts. */
async function work({ tick, idle }: ResendRunner): Promise<void> {
  await tick();
  await idle();
}

function fail(webhookId: string, count: number): string[] {
  world.webhooks.add(webhookId);
  const ids = Array.from(
    { length: count },
    (_, n) => `dlv_${String(n).padStart(4, '0')}_${webhookId}`,
  );
  for (const id of ids) world.add(id, 'exhausted', 7, webhookId);
  return ids;
}

const stateOf = () => world.running.get('rsnd_1');
const shown = async () => world.resends.findShown('comp_a', 'rsnd_1');
const done = (succeeded: number, failed = 0) => ({
  status: 'done',
  total: succeeded + failed,
  succeeded,
  failed,
});

describe('a resend of an app', () => {
  test('sends what failed at each of its webhooks, in pages of one webhook', async () => {
    const failed = [...fail('wh_1', 700), ...fail('wh_2', 2), ...fail('wh_3', 0)];
    await work(runner('a'));
    expect(sends.flat().sort()).toEqual(failed.sort());
    expect(sends.map((page) => page.length).sort()).toEqual([2, 200, 500]);
    expect(stateOf()).toMatchObject(done(702));
    // Neither parts nor leases are left.
    expect([world.running.size, leases.holders.size]).toEqual([1, 0]);
  });

  test('leaves out disabled webhooks', async () => {
    const sent = fail('wh_1', 1);
    fail('wh_off', 3);
    world.webhooks.delete('wh_off');
    await work(runner('a'));
    expect([sends, stateOf()]).toMatchObject([[sent], done(1)]);
  });

  test('sends to 230 webhooks, ten at a time', async () => {
    const failed = Array.from({ length: 230 }, (_, n) =>
      fail(`wh_${String(n).padStart(3, '0')}`, 1),
    );
    await work(runner('a'));
    expect(sends.flat().sort()).toEqual(failed.flat());
    expect(stateOf()).toMatchObject(done(230));
  });

  test('without failed deliveries is done at once', async () => {
    fail('wh_1', 0);
    await work(runner('a'));
    expect([sends, stateOf()]).toMatchObject([[], done(0)]);
  });

  test('has pages of what the limit of each webhook allows', async () => {
    fail('wh_1', 3);
    fail('wh_2', 3);
    const rateLimitOf: RunResendsDeps['rateLimitOf'] = (_companyId, webhookId) =>
      Promise.resolve(webhookId === 'wh_1' ? 1 : null);
    await work(runner('a', { rateLimitOf }));
    expect(sends.map((page) => page.length).sort()).toEqual([1, 2, 3]);
  });
});

describe('a dead endpoint of an app', () => {
  test('delays no other endpoint and is given up after five minutes', async () => {
    const lost = fail('wh_dead', 600);
    fail('wh_1', 700);
    fail('wh_2', 1);
    dead.add('wh_dead');
    openCircuits.add('wh_dead');
    const round = work(runner('a'));
    await eventually('the others', async () => (await shown())?.succeeded === 701);
    expect(await shown()).toMatchObject({ status: 'running', failed: 0 });
    nowMs = GIVE_UP_AFTER_MS;
    await eventually(
      'another repeat',
      () => sends.flat().filter((id) => id === lost[0]).length > 1,
    );
    expect(stateOf()).toMatchObject({ status: 'running' });
    nowMs = GIVE_UP_AFTER_MS + 1;
    await round;
    expect(stateOf()).toMatchObject(done(701, 600));
    // What was given up may be sent again and carries no open mark.
    expect(world.deliveries.get(String(lost[0]))).toMatchObject({
      status: 'exhausted',
      attemptCount: 7,
      mark: { state: 'failed' },
    });
    expect(world.deliveries.get(String(lost[599]))?.mark).toBeNull();
  });

  test('is not given up while it has successes, nor while its circuit is closed', async () => {
    const [first = '', second = ''] = fail('wh_dead', 2);
    dead.add('wh_dead');
    openCircuits.add('wh_dead');
    const round = work(runner('a'));
    await eventually('the page is sent', () => sends.length > 0);
    world.settle(first, true);
    nowMs = GIVE_UP_AFTER_MS + 1;
    await eventually('it is sent again', () => sends.length > 1);
    openCircuits.clear();
    nowMs = 3 * GIVE_UP_AFTER_MS;
    await eventually('and again', () => sends.length > 2);
    world.settle(second, true);
    await round;
    expect(stateOf()).toMatchObject(done(2));
  });

  test('gets fewer and fewer copies of its page while its circuit is open', async () => {
    const page = fail('wh_dead', 500);
    dead.add('wh_dead');
    openCircuits.add('wh_dead');
    let polls = 0;
    const read: typeof world.marks.read = (...args) => {
      polls += 1;
      // Each poll is a minute later; the circuit closes after four.
      nowMs += 60_000;
      if (polls === 5) openCircuits.clear();
      return world.marks.read(...args);
    };
    const round = work(runner('a', { marks: { ...world.marks, read } }));
    await eventually('two minutes after the first copy', () => polls >= 4);
    expect(sends).toEqual([page]);
    await eventually('the copy after the circuit has closed', () => sends.length > 1);
    for (const id of page) world.settle(id, true);
    await round;
    expect(stateOf()).toMatchObject(done(500));
  });

  test('is not given up by a resend of that webhook alone', async () => {
    world.running.clear();
    await world.resends.insert(sampleResend('rsnd_1', { webhookId: 'wh_dead' }));
    const [id = ''] = fail('wh_dead', 1);
    dead.add('wh_dead');
    openCircuits.add('wh_dead');
    const round = work(runner('a'));
    await eventually('the page is sent', () => sends.length > 0);
    nowMs = 2 * GIVE_UP_AFTER_MS;
    await eventually('it is sent again', () => sends.length > 1);
    world.settle(id, true);
    await round;
    expect(stateOf()).toMatchObject(done(1));
  });
});
