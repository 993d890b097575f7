import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { settleWaiting } from '@posthorn/domain/delivery/settlement.ts';
import { DAY_MS, dayNumberOf, deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import { filterOf } from '@posthorn/domain/parse-filter.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openScratchDays } from '../../../../../test/support/stores/scratch-database.ts';
import { type Database, withDays } from '../days/days.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createDeliveryQueries } from './delivery-queries.ts';
import { createPayloadErasure } from './erase-payloads.ts';
import { createMessageQueries } from './message-queries.ts';
import { createMessageStore } from './messages.ts';
import { createReplayStore, type ReplayStore } from './replays.ts';

const TODAY = dayNumberOf(Date.now()) * DAY_MS;

const messageAt = (ms: number, changes: Partial<Message> = {}): Message =>
  sampleMessage(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`, {
    appId: 'app_1',
    eventType: 'order.paid',
    erasesPayload: true,
    ...changes,
  });

/** Of two days: one that the webhook wh_2 has, one of another type, and one without a target. */
const [FIRST, HAD, OTHER, NONE] = [
  messageAt(TODAY - 2),
  messageAt(TODAY - 1, { targets: ['wh_1', 'wh_2'] }),
  messageAt(TODAY + 1, { eventType: null }),
  messageAt(TODAY + 2, { targets: [], noTargetReason: 'no_webhook' }),
] as const;
const ELSEWHERE = [
  messageAt(TODAY + 3, { appId: 'app_2' }),
  messageAt(TODAY + 4, { companyId: 'comp_b' }),
];

const span = {
  companyId: 'comp_a',
  appId: 'app_1',
  webhookId: 'wh_2',
  afterId: firstIdAt('msg', TODAY - DAY_MS),
  beforeId: '~',
};
const paid = (eventType: string | null): boolean => eventType === 'order.paid';
const added = (messageIds: readonly string[]) => ({
  companyId: 'comp_a',
  webhookId: 'wh_2',
  messageIds,
  createdAtMs: TODAY + 50,
  atMs: TODAY + 60,
});

describe('replays', () => {
  const database = duringTests(openScratchDays, ({ drop }) => drop());
  let db: Database;
  let store: ReplayStore;

  beforeAll(() => {
    const layout = { beginMs: 0, retentionMs: 30 * DAY_MS };
    db = withDays(database.db, { layout: () => layout, nowMs: Date.now, earlierMs: Date.now });
    store = createReplayStore(db);
  });

  beforeEach(async () => {
    const { messages, deliveries } = db.days;
    for (const documents of deliveries.within({})) await documents.deleteMany({});
    for (const documents of messages.within({})) await documents.deleteMany({});
    await createMessageStore(db).insertAll([FIRST, HAD, OTHER, NONE, ...ELSEWHERE]);
  });

  const shown = async ({ id }: Message) => createMessageQueries(db).findOne('comp_a', id);

  it('find what a webhook lacks and wants, page by page, oldest first', async () => {
    expect(await store.findMissing(span, paid, 9)).toEqual({
      ids: [FIRST.id, NONE.id],
      erased: 0,
      readTo: null,
    });
    expect(await store.findMissing(span, paid, 2)).toMatchObject({
      ids: [FIRST.id],
      readTo: HAD.id,
    });
    const rest = { ...span, afterId: HAD.id, beforeId: NONE.id };
    expect(await store.findMissing(rest, () => true, 9)).toMatchObject({
      ids: [OTHER.id],
      readTo: null,
    });
  });

  it('find which of these messages pass a filter, and those whose payload is erased', async () => {
    const large = messageAt(TODAY + 5, { payload: '{"amount":120}', tags: ['eu'] });
    const small = messageAt(TODAY - 5, { payload: '{"amount":20}' });
    const foreign = messageAt(TODAY + 6, { companyId: 'comp_b', payload: '{"amount":120}' });
    await createMessageStore(db).insertAll([large, small, foreign]);
    const ids = [large, small, foreign].map(({ id }) => id);
    const passing = (filter: string) => store.findPassing('comp_a', ids, filterOf(filter));
    expect(await passing('{"payload":{"amount":{"$gt":0}}}')).toEqual([large.id, small.id]);
    expect(await passing('{"payload":{"amount":{"$gt":100}},"tags":"eu"}')).toEqual([large.id]);
    expect(await passing('{"eventType":"order.sent"}')).toEqual([]);
    await db.days.messages.of(small.id).updateOne({ _id: small.id }, { $set: ERASED });
    expect(await passing('{"payload":{"amount":{"$gt":100}}}')).toEqual([large.id, small.id]);
  });

  it('add deliveries with the ordering keys of their messages', async () => {
    const keyed = messageAt(TODAY + 7, { orderingKey: 'order-17' });
    await createMessageStore(db).insertAll([keyed]);
    const [first, second] = await store.add(added([FIRST.id, keyed.id]));
    expect([first?.orderingKey, second?.orderingKey]).toEqual([undefined, 'order-17']);
  });

  it('add a target and a pending delivery, once', async () => {
    const asked = added([FIRST.id, NONE.id]);
    const refs = await store.add(asked);
    const ids = [FIRST, NONE].map(({ id }) => deliveryIdOf(id, 'wh_2'));
    expect(refs.map(({ deliveryId }) => deliveryId)).toEqual(ids);
    expect(refs[0]).toMatchObject({ createdAtMs: TODAY + 50, appId: 'app_1', erasesPayload: true });
    expect(await store.add({ ...asked, atMs: TODAY + 99 })).toEqual(refs);
    expect(await store.unattempted(ids)).toEqual(ids);
    const found = await createDeliveryQueries(db).findMany('comp_a', ids);
    expect(found.map(({ nextAttemptAtMs }) => nextAttemptAtMs)).toEqual([TODAY + 60, TODAY + 60]);
    expect((await store.findMissing(span, paid, 9)).ids).toEqual([]);
    expect((await shown(FIRST))?.targets).toEqual(['wh_1', 'wh_2']);
    expect((await shown(NONE))?.targets).toEqual(['wh_2']);
    const queries = createMessageQueries(db);
    const list = await queries.listIds('comp_a', { webhookId: 'wh_2' }, 9);
    expect(list).toEqual([NONE.id, HAD.id, FIRST.id]);
  });

  it('add a delivery that waits for the time of its message, and is not to be attempted yet', async () => {
    const deliverAtMs = Date.now() + 60_000;
    const scheduled = messageAt(TODAY + 5, { deliverAtMs });
    await createMessageStore(db).insertAll([scheduled]);
    const [ref] = await store.add(added([scheduled.id]));
    const id = String(ref?.deliveryId);
    expect(await store.unattempted([id])).toEqual([]);
    expect(await createDeliveryQueries(db).findMany('comp_a', [id])).toMatchObject([
      { status: 'pending', waiting: 'time', nextAttemptAtMs: deliverAtMs },
    ]);
  });

  it('have begun with a delivery that waits for its order, whose key may be blocked for days', async () => {
    const [ref] = await store.add(added([FIRST.id]));
    const due = {
      ...requiredAt([ref], 0, 'ref'),
      orderingKey: 'order-17',
      position: 2,
      attemptNumber: 1,
    };
    expect(await store.unattempted([due.deliveryId])).toEqual([due.deliveryId]);
    await createDeliveryStore(db).setWaiting([settleWaiting(due, 'order', TODAY + 60)]);
    expect(await store.unattempted([due.deliveryId])).toEqual([]);
  });

  it('leave out what is dropped within a day, before its last attempt', async () => {
    const first = Date.now() - 29 * DAY_MS;
    const [dropped, kept] = [messageAt(first - 60_000), messageAt(first + 60_000)];
    await createMessageStore(db).insertAll([dropped, kept]);
    const all = { ...span, afterId: firstIdAt('msg', first - DAY_MS), beforeId: FIRST.id };
    expect((await store.findMissing(all, paid, 9)).ids).toEqual([kept.id]);
  });

  it('neither add to a message whose payload is erased, nor to one of another company', async () => {
    await db.days.messages.of(FIRST.id).updateOne({ _id: FIRST.id }, { $set: ERASED });
    expect(await store.findMissing(span, paid, 9)).toMatchObject({ erased: 1 });
    expect(await store.add(added([FIRST.id, ...ELSEWHERE.slice(1).map(({ id }) => id)]))).toEqual(
      [],
    );
    expect((await shown(FIRST))?.targets).toEqual(['wh_1']);
  });

  it('keep the payload until the added delivery is delivered too', async () => {
    const erasure = createPayloadErasure(db, 0);
    const deliver = async (webhookId: string): Promise<void> => {
      const deliveryId = deliveryIdOf(FIRST.id, webhookId);
      const deliveries = createDeliveryStore(db);
      const settled = {
        id: deliveryId,
        messageId: FIRST.id,
        webhookId,
        companyId: 'comp_a',
        appId: 'app_1',
        status: 'delivered' as const,
        reason: null,
        attempt: SUCCESS,
        nextAttemptAtMs: null,
        createdAtMs: 1,
        updatedAtMs: 1,
      };
      const stored = await deliveries.insertAll([settled]);
      if (stored.size > 0) await deliveries.appendAttempts([settled]);
      await erasure.eraseOrNote([{ deliveryId, messageId: FIRST.id, companyId: 'comp_a' }]);
      await erasure.checkNoted();
    };
    await store.add(added([FIRST.id]));
    await deliver('wh_1');
    expect((await shown(FIRST))?.payload).toBe(FIRST.payload);
    await deliver('wh_2');
    expect(await shown(FIRST)).toMatchObject({ payload: '', isPayloadErased: true });
  });
});

const ERASED = { payload: '', isPayloadErased: true } as const;

const SUCCESS: Attempt = {
  id: 'att_1',
  number: 1,
  trigger: 'retry',
  outcome: 'success',
  statusCode: 200,
  response: null,
  responseHeaders: [],
  startedAtMs: 1,
  durationMs: 1,
};
