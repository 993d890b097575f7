import { beforeAll, describe, expect, it } from '@jest/globals';
import { type SettledDelivery, unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { DAY_MS, dayNumberOf, deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { openScratchDays } from '../../../../../test/support/stores/scratch-database.ts';
import { createVault } from '../../security/vault.ts';
import { type Database, withDays } from '../days/days.ts';
import { createDeliveryStore } from '../messages/deliveries.ts';
import { createDeliveryQueries } from '../messages/delivery-queries.ts';
import { createMessageStore } from '../messages/messages.ts';
import { type CancellationStore, createCancellationStore } from './cancellations.ts';
import { createWebhookStates, createWebhookStore } from './webhooks.ts';

const TODAY = dayNumberOf(Date.now()) * DAY_MS;
const BEFORE_MS = TODAY + 5;
const WEBHOOK = sampleWebhook(1, { companyId: 'comp_a', appId: 'app_1' });
const { id: WH } = WEBHOOK;

const messageAt = (ms: number, changes: Partial<Message> = {}): Message =>
  sampleMessage(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`, {
    companyId: 'comp_a',
    targets: [WH, 'wh_other'],
    ...changes,
  });

/** When what the messages have ends. */
const LIFETIME = { expiresAtMs: TODAY + 2 * DAY_MS, removeAtMs: TODAY + 3 * DAY_MS };
/** Of two days before the time, and one of the time itself. */
const MESSAGES = [TODAY - 2, TODAY - 1, TODAY + 1, TODAY + 4, BEFORE_MS].map((ms) =>
  messageAt(ms, LIFETIME),
);
const IDS = MESSAGES.map(({ id }) => deliveryIdOf(id, WH));

describe('cancellations', () => {
  const database = duringTests(openScratchDays, ({ drop }) => drop());
  let db: Database;
  let store: CancellationStore;

  beforeAll(async () => {
    const layout = { beginMs: 0, retentionMs: 30 * DAY_MS };
    db = withDays(database.db, { layout: () => layout, nowMs: Date.now, earlierMs: Date.now });
    store = createCancellationStore(db);
    await createMessageStore(db).insertAll(MESSAGES);
  });

  const step = { before: undefined, limit: 2, atMs: 9 };
  const cancelling = { webhookId: WH, companyId: 'comp_a', cancelBeforeMs: BEFORE_MS };

  async function plant(changes: (id: string) => Partial<SettledDelivery> | null): Promise<void> {
    for (const documents of db.days.deliveries.within({})) await documents.deleteMany({});
    const settled = MESSAGES.flatMap((message) =>
      [WH, 'wh_other'].flatMap((webhookId) => {
        const delivery = unattemptedDelivery(message, webhookId, 1);
        const changed = changes(delivery.id);
        return changed ? [{ ...delivery, ...changed }] : [];
      }),
    );
    await createDeliveryStore(db).insertAll(settled);
  }

  async function statuses(): Promise<(string | null | undefined)[][]> {
    const found = await createDeliveryQueries(db).listedOf('comp_a', IDS);
    const byId = new Map(found.map((each) => [each.id, each]));
    return IDS.map((id) => [byId.get(id)?.status, byId.get(id)?.reason]);
  }

  const CANCELLED = ['cancelled', 'cancelled_by_client'];
  const PENDING = ['pending', null];

  it('are stored page by page, newest first, in what was created before the time', async () => {
    const [old = '', , third] = IDS;
    await plant((id) => {
      if (id === old) return { status: 'delivered' };
      // A replay made it later.
      return id === third ? { createdAtMs: BEFORE_MS } : {};
    });
    const first = await store.cancelRecorded(cancelling, step);
    expect(first).toEqual({ cancelled: 1, before: `${String(MESSAGES[2]?.id)}.${String(third)}` });
    expect(await statuses()).toEqual([['delivered', null], PENDING, PENDING, CANCELLED, PENDING]);
    const second = { ...step, before: first.before ?? undefined };
    expect(await store.cancelRecorded(cancelling, second)).toEqual({ cancelled: 1, before: null });
    expect(await statuses()).toEqual([['delivered', null], CANCELLED, PENDING, CANCELLED, PENDING]);
    const others = MESSAGES.map(({ id }) => deliveryIdOf(id, 'wh_other'));
    const states = await createDeliveryStore(db).statesOf(others);
    expect([...states.values()].map(({ status }) => status)).toEqual(others.map(() => 'pending'));
  });

  it('are recorded for what had no attempt, since a time', async () => {
    const [, , third] = IDS;
    await plant((id) => (id === third ? { status: 'delivered' } : null));
    const since = { ...step, limit: 3, sinceMs: TODAY - 1 };
    expect(await store.cancelUnrecorded(cancelling, since)).toEqual({
      cancelled: 2,
      before: MESSAGES[1]?.id,
    });
    const rest = { ...since, before: MESSAGES[1]?.id };
    expect(await store.cancelUnrecorded(cancelling, rest)).toEqual({ cancelled: 0, before: null });
    const NONE = [undefined, undefined];
    expect(await statuses()).toEqual([NONE, CANCELLED, ['delivered', null], CANCELLED, NONE]);
    const recorded = await createDeliveryQueries(db).findMany('comp_a', IDS);
    const cancelled = recorded.filter(({ status }) => status === 'cancelled');
    expect(cancelled).toMatchObject([LIFETIME, LIFETIME]);
  });

  it('are pending at a webhook from the update with the time until the pass over it has ended', async () => {
    const webhooks = createWebhookStore(db, createVault([randomKey('key-1')]));
    await webhooks.insert(WEBHOOK);
    expect(await webhooks.isCancelling('comp_a')).toBe(false);
    const updated = await webhooks.update(WEBHOOK, { cancelBeforeMs: BEFORE_MS });
    expect(updated).toMatchObject({ cancelBeforeMs: BEFORE_MS });
    expect(await webhooks.cancelBeforeOf('comp_a', [WH, 'wh_other'])).toEqual(
      new Map([[WH, BEFORE_MS]]),
    );
    const states = await createWebhookStates(db).statesOf([WH]);
    expect(states.get(WH)).toMatchObject({ disabled: false, cancelBeforeMs: BEFORE_MS });
    const next = { afterCompanyId: '', exceptIds: [], limit: 9 };
    expect(await store.nextCancelling(next)).toEqual([cancelling]);
    expect(await store.nextCancelling({ ...next, afterCompanyId: 'comp_a' })).toEqual([]);
    expect(await store.nextCancelling({ ...next, exceptIds: [WH] })).toEqual([]);
    expect(await store.read([WH, 'wh_other'])).toEqual([cancelling]);
    await store.finish({ ...cancelling, cancelBeforeMs: BEFORE_MS - 1 });
    expect([await webhooks.isCancelling('comp_a'), await webhooks.isCancelling('comp_b')]).toEqual([
      true,
      false,
    ]);
    await store.finish(cancelling);
    expect([await store.nextCancelling(next), await store.read([WH])]).toEqual([[], []]);
    expect(await webhooks.cancelBeforeOf('comp_a', [WH])).toEqual(new Map([[WH, BEFORE_MS]]));
  });
});
