import { beforeEach, describe, expect, it } from '@jest/globals';
import type { SequenceHead } from '@posthorn/domain/delivery/sequence.ts';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import {
  settleAttempt,
  settleCancelled,
  settleWaiting,
} from '@posthorn/domain/delivery/settlement.ts';
import { DAY_MS, firstIdAt } from '@posthorn/domain/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createSequenceQueries } from './sequence-queries.ts';
import {
  createSequenceStore,
  idOfPlace,
  type NewFollower,
  type SequencePlace,
} from './sequences.ts';
import { createWaitingDeliveries } from './waiting-deliveries.ts';

const scratch = duringTests(openScratchDatabase, ({ drop }) => drop());

const NOW_MS = Date.now();
const KEY: SequencePlace = { companyId: 'comp_a', webhookId: 'wh_1', orderingKey: 'order-1' };
const ID = idOfPlace(KEY);

beforeEach(async () => {
  await collection(scratch.db, 'deliveries').deleteMany({});
  await collection(scratch.db, 'sequences').deleteMany({});
});

const store = () => createSequenceStore(scratch.db);
const queries = () => createSequenceQueries(scratch.db);
const deliveries = () => createDeliveryStore(scratch.db);
const stored = (id: string) => collection(scratch.db, 'deliveries').findOne({ _id: id });

const idOf = (n: number, ageMs = 0): string =>
  `${firstIdAt('dlv', NOW_MS - ageMs).slice(0, -4)}${String(n).padStart(4, '0')}`;

const headAt = (n: number): SequenceHead => ({
  deliveryId: idOf(n),
  messageId: `msg_${n}`,
  position: n,
});

/** The delivery with this number and position, before its attempt. */
function refAt(n: number, { place = KEY, ageMs = 0 } = {}) {
  const ref = { messageId: `msg_${n}`, appId: null, createdAtMs: NOW_MS, position: n };
  return { ...place, ...ref, deliveryId: idOf(n, ageMs), attemptNumber: 1 };
}

function follower(n: number, options: Parameters<typeof refAt>[1] = {}): NewFollower {
  const settled = settleWaiting(refAt(n, options), 'order', NOW_MS);
  return { ...(options.place ?? KEY), head: headAt(1), settled };
}

const FAILED: Attempt = {
  id: 'att_1',
  number: 1,
  trigger: 'first',
  outcome: 'http_5xx',
  statusCode: 500,
  response: null,
  responseHeaders: [],
  startedAtMs: NOW_MS,
  durationMs: 1,
};

/** Stores the first delivery as the head, after an attempt that failed. */
async function leave(): Promise<void> {
  await store().setHeads([{ ...KEY, head: headAt(1) }], NOW_MS);
  await deliveries().insertAll([settleAttempt(refAt(1), FAILED, null, [5_000])]);
}

const read = async () => requiredAt([...(await store().findMany([ID])).values()], 0, 'sequence');
const positionsFrom = async (position: number, limit = 16) =>
  (await store().followers(await read(), position, limit)).map((each) => each.position);

describe('a sequence', () => {
  it('is made by a head that leaves memory, and names the newest head', async () => {
    await leave();
    expect(await read()).toMatchObject({
      id: ID,
      ...KEY,
      head: headAt(1),
      isBlocked: false,
      dueAtMs: NOW_MS + 3_600_000,
    });
    await store().setHeads([{ ...KEY, head: headAt(3) }], NOW_MS + 1);
    expect(await read()).toMatchObject({ head: headAt(3), fromId: idOf(1), sinceMs: NOW_MS });
  });

  it('has its followers in their order, over days, and reads them in pages', async () => {
    await leave();
    await store().addFollowers([follower(2), follower(3, { ageMs: DAY_MS }), follower(4)], NOW_MS);
    expect(await positionsFrom(1)).toEqual([1, 2, 3, 4]);
    expect(await positionsFrom(2, 2)).toEqual([2, 3]);
    expect(await store().lastPosition(await read())).toBe(4);
    expect(await stored(idOf(2))).toMatchObject({
      waiting: 'order',
      position: 2,
      status: 'pending',
    });
  });

  it('keeps the place of a follower that is stored twice, and leaves one that has gone on', async () => {
    await leave();
    await store().addFollowers([follower(2), follower(3)], NOW_MS);
    await deliveries().cancelPending([
      { id: idOf(2), reason: 'cancelled_by_client', atMs: NOW_MS },
    ]);
    const moved = { ...follower(9), settled: { ...follower(3).settled, position: 9 } };
    await store().addFollowers([follower(2), moved, follower(4)], NOW_MS + 5);
    expect(await positionsFrom(2)).toEqual([3, 4]);
    expect(await stored(idOf(2))).toMatchObject({ status: 'cancelled' });
  });

  it('makes one wait again that came too early, and gives a replayed delivery its place', async () => {
    await leave();
    const { position: _none, ...replayed } = refAt(3);
    await deliveries().insertAll([settleWaiting(replayed, 'hold', NOW_MS)]);
    await store().addFollowers([follower(2)], NOW_MS);
    const waiting = createWaitingDeliveries(scratch.db);
    await waiting.endWait(await store().followers(await read(), 2, 1), NOW_MS + 1);
    expect((await stored(idOf(2)))?.waiting).toBeUndefined();
    await store().addFollowers([follower(2), follower(3)], NOW_MS + 2);
    const places = await Promise.all([stored(idOf(2)), stored(idOf(3))]);
    expect(places).toMatchObject([
      { waiting: 'order', position: 2 },
      { waiting: 'order', position: 3 },
    ]);
  });

  it('is deleted only as it was read', async () => {
    await leave();
    const seen = await read();
    await store().addFollowers([follower(2)], NOW_MS);
    expect(await store().remove(seen)).toBe(false);
    expect(await store().remove(await read())).toBe(true);
    expect(await store().findMany([ID])).toEqual(new Map());
  });

  it('knows the state of its head, also before it has a document', async () => {
    await leave();
    const heads = [headAt(1), headAt(2), { ...headAt(3), removeAtMs: NOW_MS - 1 }];
    expect(await store().findHeads(heads, NOW_MS)).toEqual(
      new Map<string, unknown>([
        [idOf(1), { status: 'pending', attemptCount: 1, waiting: null }],
        [idOf(2), 'missing'],
        [idOf(3), 'removed'],
      ]),
    );
  });
});

describe('a look at sequences', () => {
  it('finds those that are due, and stores what was decided unless they have changed', async () => {
    await leave();
    expect(await store().dueAt(NOW_MS, 10)).toEqual([]);
    await store().makeDue([ID], NOW_MS);
    const [due] = await store().dueAt(NOW_MS, 10);
    const sequence = requiredAt([due], 0, 'due sequence');
    expect(sequence).toMatchObject({ id: ID, lookAfterMs: 0 });
    await store().makeDueOf([idOf(1)], NOW_MS - 1);
    await store().changeMany([{ sequence, isBlocked: true, againAfterMs: DAY_MS }], NOW_MS);
    expect(await read()).toMatchObject({ isBlocked: false, dueAtMs: NOW_MS - 1 });
    const change = {
      sequence: await read(),
      head: headAt(2),
      isBlocked: true,
      againAfterMs: 1_000,
    };
    await store().changeMany([change], NOW_MS);
    expect(await read()).toMatchObject({
      head: headAt(2),
      isBlocked: true,
      dueAtMs: NOW_MS + 1_000,
      lookAfterMs: 1_000,
    });
    expect(await store().estimate(10)).toEqual({ all: 1, blocked: 1 });
  });

  it('gives each company a share when many are due', async () => {
    const places = ['comp_a', 'comp_a', 'comp_a', 'comp_a', 'comp_b'].map((companyId, index) => ({
      companyId,
      webhookId: 'wh_1',
      orderingKey: `key-${index}`,
    }));
    await store().setHeads(
      places.map((place) => ({ ...place, head: headAt(1) })),
      NOW_MS - DAY_MS,
    );
    const { dueAt } = store();
    const pages = [await dueAt(NOW_MS, 3), await dueAt(NOW_MS, 3)];
    expect(pages.flat().map(({ companyId }) => companyId)).toContain('comp_b');
  });
});

describe('the keys of a webhook', () => {
  async function block(): Promise<void> {
    await leave();
    await store().addFollowers([follower(2), follower(3)], NOW_MS);
    await deliveries().exhaust({ id: idOf(1), attemptCount: 1, reason: null, atMs: NOW_MS });
    await store().changeMany(
      [{ sequence: await read(), isBlocked: true, againAfterMs: DAY_MS }],
      NOW_MS,
    );
  }

  it('are listed by state with their head and the count of their followers', async () => {
    await leave();
    await store().addFollowers([follower(2)], NOW_MS);
    const { list, find } = queries();
    const waiting = { state: 'waiting', limit: 1 } as const;
    const { listed, next } = await list(KEY, waiting);
    expect(listed).toMatchObject([
      { id: ID, orderingKey: 'order-1', state: 'waiting', headDeliveryId: idOf(1), waiting: 1 },
    ]);
    expect(next).toMatchObject({ id: ID, sinceMs: NOW_MS });
    expect((await list(KEY, { ...waiting, after: next ?? undefined })).listed).toEqual([]);
    expect((await list(KEY, { ...waiting, state: 'blocked' })).listed).toEqual([]);
    expect((await list({ ...KEY, companyId: 'comp_b' }, waiting)).listed).toEqual([]);
    expect(await find(KEY)).toMatchObject({ headStatus: 'pending' });
    expect(await find({ ...KEY, orderingKey: 'other' })).toBeNull();
  });

  it('are blocked until their head is skipped, once and by its id', async () => {
    await block();
    const { list, skip, countBlocked, find } = queries();
    expect(await countBlocked(KEY, 10)).toBe(1);
    expect((await list(KEY, { state: 'blocked', limit: 5 })).listed).toMatchObject([
      { state: 'blocked', headStatus: 'exhausted', waiting: 2, nextAttemptAtMs: null },
    ]);
    expect(await skip(KEY, idOf(2), NOW_MS)).toBe(false);
    expect(await skip(KEY, idOf(1), NOW_MS)).toBe(true);
    expect(await skip(KEY, idOf(1), NOW_MS)).toBe(false);
    expect(await read()).toMatchObject({ dueAtMs: NOW_MS, head: { isSkipped: true } });
    expect(await find(KEY)).toBeNull();
  });

  it('are made due, all or the blocked ones, and removed with their webhook', async () => {
    await leave();
    const { makeAllDue, removeOf } = store();
    await makeAllDue(KEY, 'blocked', NOW_MS);
    expect(await read()).toMatchObject({ dueAtMs: NOW_MS + 3_600_000 });
    await makeAllDue(KEY, 'all', NOW_MS);
    expect(await read()).toMatchObject({ dueAtMs: NOW_MS });
    expect(await removeOf('comp_b', ['wh_1'], 10)).toBe(0);
    expect(await removeOf('comp_a', ['wh_1'], 10)).toBe(1);
  });

  it('show no head that has ended', async () => {
    await leave();
    await deliveries().insertAll([settleCancelled(refAt(5), 'expired', NOW_MS)]);
    await store().setHeads([{ ...KEY, head: headAt(5) }], NOW_MS);
    expect((await queries().list(KEY, { state: 'waiting', limit: 5 })).listed).toEqual([]);
  });
});
