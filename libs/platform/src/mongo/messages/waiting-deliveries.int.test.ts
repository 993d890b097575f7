import { beforeEach, describe, expect, it } from '@jest/globals';
import { type SettledDelivery, settleWaiting } from '@posthorn/domain/delivery/settlement.ts';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import type { Profiled } from '../../../../../test/support/stores/profiled-queries.ts';
import {
  openFreshDatabase,
  openScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createWaitingDeliveries } from './waiting-deliveries.ts';

const scratch = duringTests(openScratchDatabase, ({ drop }) => drop());

beforeEach(() => collection(scratch.db, 'deliveries').deleteMany({}));

const waitingOf = () => createWaitingDeliveries(scratch.db);
const WEBHOOK = { companyId: 'comp_a', webhookId: 'wh_1' };
const NOW_MS = Date.now();

const idOf = (n: number): string =>
  `${firstIdAt('dlv', NOW_MS).slice(0, -4)}${String(n).padStart(4, '0')}`;

function settled(n: number, attemptNumber = 1, webhookId = 'wh_1', companyId = 'comp_a') {
  const ref = { messageId: `msg_${n}`, webhookId, companyId, appId: null, createdAtMs: NOW_MS };
  return settleWaiting({ ...ref, deliveryId: idOf(n), attemptNumber }, 'hold', NOW_MS + n);
}

/** The same before it waits. */
function unsettled(n: number): SettledDelivery {
  const delivery: SettledDelivery = settled(n);
  delete delivery.wait;
  return delivery;
}

const insert = (...all: ReturnType<typeof settled>[]) =>
  createDeliveryStore(scratch.db).insertAll(all);
const stored = (n: number) => collection(scratch.db, 'deliveries').findOne({ _id: idOf(n) });
const idsOf = (page: readonly { id: string }[]): string[] => page.map(({ id }) => id);

describe('waiting deliveries', () => {
  it('are read oldest first, by webhook, in pages', async () => {
    await insert(settled(3), settled(1, 4), settled(2), settled(4, 1, 'wh_2'));
    const { page, count } = waitingOf();
    const first = await page(WEBHOOK, '', 2);
    expect(first).toMatchObject([
      { id: idOf(1), attemptCount: 3, waitingSinceMs: NOW_MS + 1 },
      { id: idOf(2), attemptCount: 0 },
    ]);
    expect(idsOf(await page(WEBHOOK, idOf(2), 5))).toEqual([idOf(2), idOf(3)]);
    expect(idsOf(await page({ ...WEBHOOK, companyId: 'comp_b' }, '', 5))).toEqual([]);
    expect([await count(WEBHOOK, 10), await count(WEBHOOK, 2)]).toEqual([3, 2]);
  });

  it('are read with those that wait for their order where their webhook is gone', async () => {
    const follows = (n: number, webhookId = 'wh_1') => {
      const ref = { messageId: `msg_${n}`, webhookId, companyId: 'comp_a', appId: null };
      const place = { createdAtMs: NOW_MS, orderingKey: 'order-1', position: n };
      const due = { ...ref, ...place, deliveryId: idOf(n), attemptNumber: 1 };
      return settleWaiting(due, 'order', NOW_MS);
    };
    await insert(follows(1), settled(2), follows(3), follows(4, 'wh_2'));
    const { page, pageToCancel } = waitingOf();
    expect(idsOf(await page(WEBHOOK, '', 5))).toEqual([idOf(2)]);
    expect(idsOf(await pageToCancel(WEBHOOK, '', 2))).toEqual([idOf(1), idOf(2)]);
    const [last] = await pageToCancel(WEBHOOK, idOf(3), 5);
    expect(last).toMatchObject({ id: idOf(3), orderingKey: 'order-1', position: 3 });
  });

  it('are due from their release on, and those that wait again since they were read stay', async () => {
    await insert(settled(1), settled(2));
    const { page, endWait } = waitingOf();
    const seen = await page(WEBHOOK, '', 5);
    await createDeliveryStore(scratch.db).setWaiting([{ ...settled(2), updatedAtMs: NOW_MS + 50 }]);
    await endWait(seen, NOW_MS + 99);
    expect(await stored(1)).toMatchObject({ nextAttemptAt: new Date(NOW_MS + 99) });
    expect(await stored(1)).not.toHaveProperty('waiting');
    expect(idsOf(await page(WEBHOOK, '', 5))).toEqual([idOf(2)]);
  });

  it('are open after their release until their attempt is recorded, or they wait again', async () => {
    await insert(settled(1), settled(2), settled(3));
    const { page, endWait, look } = waitingOf();
    const released = await page(WEBHOOK, '', 5);
    await endWait(released, NOW_MS + 9);
    const deliveries = createDeliveryStore(scratch.db);
    await deliveries.setWaiting([settled(2)]);
    await deliveries.cancelPending([{ id: idOf(3), reason: 'webhook_deleted', atMs: 1 }]);
    const { open, heldAgain } = await look(released);
    expect([[...open], [...heldAgain]]).toEqual([[idOf(1)], [idOf(2)]]);
  });

  it('are under way from their release until their next attempt is later', async () => {
    await insert(...[1, 2, 3, 4].map((n) => settled(n)));
    const { page, endWait, underWay } = waitingOf();
    const of = { beforeId: idOf(3), limit: 5 };
    expect(await underWay(WEBHOOK, of)).toEqual([]);
    await endWait(await page(WEBHOOK, '', 2), NOW_MS);
    expect(idsOf(await underWay(WEBHOOK, of))).toEqual([idOf(1), idOf(2)]);
    expect(idsOf(await underWay(WEBHOOK, { ...of, limit: 1 }))).toEqual([idOf(2)]);
    // Overdue, as one that is deferred while the circuit of its endpoint is open.
    const parked = { attemptCount: 1, nextAttemptAt: new Date(NOW_MS - 60_000) };
    await collection(scratch.db, 'deliveries').updateOne({ _id: idOf(1) }, { $set: parked });
    expect(idsOf(await underWay(WEBHOOK, of))).toEqual([idOf(2)]);
    expect(await underWay({ ...WEBHOOK, companyId: 'comp_b' }, of)).toEqual([]);
  });

  it('are found by their webhooks, each once', async () => {
    await insert(settled(1), settled(2), settled(3, 1, 'wh_2'), settled(4, 1, 'wh_3', 'comp_b'));
    const { webhooks, allWebhooks } = waitingOf();
    const ids = async (found: AsyncIterable<{ webhookId: string }>) =>
      (await Array.fromAsync(found)).map(({ webhookId }) => webhookId);
    expect(await ids(webhooks('comp_a'))).toEqual(['wh_1', 'wh_2']);
    expect(await ids(webhooks('comp_a', ['wh_2', 'wh_3']))).toEqual(['wh_2']);
    expect(await ids(allWebhooks())).toEqual(['wh_1', 'wh_2', 'wh_3']);
  });

  it('are cancelled when their day is dropped within a day', async () => {
    await insert(settled(1), settled(2), settled(3));
    const { expire } = waitingOf();
    expect([await expire(NOW_MS, 2), await expire(NOW_MS, 2), await expire(NOW_MS, 2)]).toEqual([
      2, 1, 0,
    ]);
    expect(await stored(1)).toMatchObject({
      status: 'cancelled',
      reason: 'expired_while_waiting',
      nextAttemptAt: null,
    });
    expect(await stored(1)).not.toHaveProperty('waitingSince');
  });

  it('end their wait with an attempt, and with their cancellation', async () => {
    await insert(settled(1), settled(2));
    const deliveries = createDeliveryStore(scratch.db);
    const attempt = {
      id: 'att_1',
      number: 1,
      trigger: 'first' as const,
      outcome: 'http_5xx' as const,
      statusCode: 500,
      response: null,
      responseHeaders: [],
      startedAtMs: NOW_MS,
      durationMs: 1,
    };
    expect(await deliveries.appendAttempts([{ ...unsettled(1), attempt }])).toEqual({
      appended: 1,
    });
    await deliveries.cancelPending([{ id: idOf(2), reason: 'webhook_disabled', atMs: 1 }]);
    for (const n of [1, 2]) expect(await stored(n)).not.toHaveProperty('waiting');
  });

  it('begin to wait only before their next attempt, while they are pending', async () => {
    const deliveries = createDeliveryStore(scratch.db);
    await deliveries.insertAll([unsettled(1)]);
    expect(await deliveries.setWaiting([settled(1, 2)])).toEqual({ matched: 0 });
    expect(await deliveries.setWaiting([settled(1)])).toEqual({ matched: 1 });
    await deliveries.cancelPending([{ id: idOf(1), reason: 'webhook_deleted', atMs: 1 }]);
    expect(await deliveries.setWaiting([settled(1)])).toEqual({ matched: 0 });
  });
});

describe('deliveries on hold whose message has expired', () => {
  /** Expired `n` milliseconds before now. */
  const expiring = (n: number, companyId = 'comp_a'): SettledDelivery => ({
    ...settled(n, 1, 'wh_1', companyId),
    expiresAtMs: NOW_MS - n,
  });

  it('are read by time, and no others', async () => {
    await insert(expiring(2), expiring(4), expiring(-1), settled(5));
    const deliveries = createDeliveryStore(scratch.db);
    const pending = expiring(6);
    delete pending.wait;
    await deliveries.insertAll([pending, expiring(7)]);
    await deliveries.cancelPending([{ id: idOf(7), reason: 'webhook_deleted', atMs: 1 }]);
    const { expiredAt } = waitingOf();
    const found = await expiredAt(NOW_MS, 9);
    expect(found).toMatchObject([
      { id: idOf(4), webhookId: 'wh_1', expiresAtMs: NOW_MS - 4 },
      { id: idOf(2) },
    ]);
    expect(idsOf(await expiredAt(NOW_MS - 3, 9))).toEqual([idOf(4)]);
  });

  it('are read for each company while one has very many, through indexes and without a sort', async () => {
    const { db, drop } = await openFreshDatabase();
    const many = Array.from({ length: 400 }, (_, n) => expiring(1_000 + n, 'comp_m'));
    const later = Array.from({ length: 600 }, (_, n) => expiring(-1 - n, `comp_${n}`));
    await createDeliveryStore(db).insertAll([...many, expiring(1, 'comp_z'), ...later]);
    await db.command({ profile: 2 });
    const found = await createWaitingDeliveries(db).expiredAt(NOW_MS, 20);
    await db.command({ profile: 0 });
    expect(new Set(found.map(({ companyId }) => companyId))).toEqual(new Set(['comp_m', 'comp_z']));
    const profile = db.collection<Profiled>('system.profile');
    const reads = await profile.find({ 'command.find': 'deliveries' }).toArray();
    expect(reads.length).toBeGreaterThan(1);
    expect(reads.filter(({ hasSortStage }) => hasSortStage)).toEqual([]);
    expect(Math.max(...reads.map(({ docsExamined = 0 }) => docsExamined))).toBeLessThanOrEqual(20);
    await drop();
  });
});

describe('deliveries whose time has come', () => {
  /** `n` milliseconds before now. */
  const timed = (n: number, companyId: string): SettledDelivery => {
    const webhookId = `wh_${companyId}`;
    const ref = { messageId: `msg_${n}`, webhookId, companyId, appId: null, createdAtMs: NOW_MS };
    const identified = { ...ref, deliveryId: idOf(n), attemptNumber: 1 };
    return settleWaiting(identified, 'time', NOW_MS, NOW_MS - n);
  };
  const companiesOf = (page: readonly { companyId: string }[]): string[] => [
    ...new Set(page.map(({ companyId }) => companyId)),
  ];

  it('are read by time, and none before its time', async () => {
    await insert(timed(1, 'comp_b'), timed(3, 'comp_a'), timed(2, 'comp_c'), timed(-1, 'comp_a'));
    const { dueAt } = waitingOf();
    expect(idsOf(await dueAt(NOW_MS, 9))).toEqual([idOf(3), idOf(2), idOf(1)]);
    expect(idsOf(await dueAt(NOW_MS - 2, 9))).toEqual([idOf(3), idOf(2)]);
  });

  it('are read for each company while one has very many that have been due for longer', async () => {
    const many = Array.from({ length: 300 }, (_, n) => timed(1_000 + n, 'comp_m'));
    const later = timed(-1, 'comp_n');
    await insert(...many, timed(1, 'comp_a'), timed(2, 'comp_z'), later);
    const { dueAt, endWait } = waitingOf();
    const page = await dueAt(NOW_MS, 20);
    expect(companiesOf(page).sort()).toEqual(['comp_a', 'comp_m', 'comp_z']);
    expect([page.length, new Set(idsOf(page)).size]).toEqual([20, 20]);
    expect(idsOf(page)).toContain(idOf(1_299));
    for (let left = page; left.length > 0; left = await dueAt(NOW_MS, 20)) {
      await endWait(left, NOW_MS + 1);
    }
    expect(await stored(-1)).toHaveProperty('waiting', 'time');
    const rest = collection(scratch.db, 'deliveries').countDocuments({ waiting: 'time' });
    expect(await rest).toBe(1);
  });

  it('are read for each of many companies in turn', async () => {
    const companies = Array.from({ length: 30 }, (_, n) => `comp_${n + 10}`);
    const all = companies.flatMap((id, n) =>
      Array.from({ length: 40 }, (_, k) => timed(8_000 - 40 * n - k, id)),
    );
    await insert(...all);
    const { dueAt, endWait } = waitingOf();
    const seen = new Set<string>();
    // Six pages have one share of each company.
    for (let count = 0; count < 6; count += 1) {
      const page = await dueAt(NOW_MS, 20);
      for (const id of companiesOf(page)) seen.add(id);
      await endWait(page, NOW_MS + 1);
    }
    expect([...seen].sort()).toEqual(companies);
  });

  it('are read without a sort and without those of other times, through indexes', async () => {
    const { db, drop } = await openFreshDatabase();
    const many = Array.from({ length: 400 }, (_, n) => timed(n, 'comp_m'));
    const others = Array.from({ length: 600 }, (_, n) => timed(-1 - n, `comp_${n}`));
    await createDeliveryStore(db).insertAll([...many, ...others]);
    await db.command({ profile: 2 });
    await createWaitingDeliveries(db).dueAt(NOW_MS, 50);
    await db.command({ profile: 0 });
    const profile = db.collection<Profiled>('system.profile');
    const reads = await profile.find({ 'command.find': 'deliveries' }).toArray();
    expect(reads.length).toBeGreaterThan(1);
    expect(reads.filter(({ hasSortStage }) => hasSortStage)).toEqual([]);
    expect(Math.max(...reads.map(({ docsExamined = 0 }) => docsExamined))).toBeLessThanOrEqual(50);
    await drop();
  });
});
