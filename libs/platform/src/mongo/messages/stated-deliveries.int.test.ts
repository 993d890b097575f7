import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DAY_MS, dayNumberOf, deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openScratchDays } from '../../../../../test/support/stores/scratch-database.ts';
import { countIn } from '../../../../../test/support/stores/stored-documents.ts';
import { type Database, withDays } from '../days/days.ts';
import { createResendMarks } from '../webhooks/resend-marks.ts';
import { createResendStore } from '../webhooks/resends.ts';
import type { DeliveryPosition } from './delivery-pages.ts';
import { createDeliveryQueries, type UndeliveredFilter } from './delivery-queries.ts';
import { createMessageStore } from './messages.ts';
import { createStatedDeliveries, type StatedDeliveries } from './stated-deliveries.ts';

const TODAY = dayNumberOf(Date.now()) * DAY_MS;

function messageAt(ms: number, n: number, changes: Partial<Message> = {}): Message {
  return sampleMessage(`${firstIdAt('msg', ms)}${String(n).padStart(16, '0')}`, {
    targets: ['wh_0', 'wh_1', 'wh_2'],
    ...changes,
  });
}

/** Of yesterday and today, three in the same millisecond. */
const MESSAGES = [
  messageAt(TODAY - 2, 0, { disabledTargets: new Set(['wh_1', 'wh_2']) }),
  messageAt(TODAY - 1, 1),
  messageAt(TODAY, 2, { disabledTargets: new Set(['wh_1']) }),
  messageAt(TODAY, 3, { disabledTargets: new Set(['wh_1']), appId: 'app_2' }),
  messageAt(TODAY, 4, { disabledTargets: new Set(['wh_2', 'wh_1']) }),
  messageAt(TODAY + 1, 5, { disabledTargets: new Set(['wh_2']) }),
  messageAt(TODAY + 2, 6, { disabledTargets: new Set(['wh_1']), companyId: 'comp_b' }),
];

interface Stated {
  id: string;
  messageId: string;
  webhookId: string;
}

const STATED: Stated[] = MESSAGES.filter(({ companyId }) => companyId === 'comp_a').flatMap(
  ({ id: messageId, disabledTargets }) =>
    [...disabledTargets].map((webhookId) => {
      return { id: deliveryIdOf(messageId, webhookId), messageId, webhookId };
    }),
);

const newestFirst = (keyOf: (stated: Stated) => string): string[] =>
  STATED.toSorted((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1)).map(({ id }) => id);
const BY_MESSAGE = newestFirst(({ id, messageId }) => messageId + id);
const ofWebhook = (webhookId: string): string[] => {
  const own = new Set(STATED.filter((each) => each.webhookId === webhookId).map(({ id }) => id));
  return newestFirst(({ id }) => id).filter((id) => own.has(id));
};

describe('deliveries that their messages state', () => {
  const database = duringTests(openScratchDays, ({ drop }) => drop());
  let db: Database;
  let stated: StatedDeliveries;

  beforeAll(() => {
    const layout = { beginMs: 0, retentionMs: 30 * DAY_MS };
    db = withDays(database.db, { layout: () => layout, nowMs: Date.now, earlierMs: Date.now });
    stated = createStatedDeliveries(db);
  });

  beforeEach(async () => {
    for (const kind of [db.days.messages, db.days.deliveries]) {
      for (const documents of kind.within({})) await documents.deleteMany({});
    }
    await createMessageStore(db).insertAll(MESSAGES);
  });

  const recorded = (): Promise<number> => countIn(db.days.deliveries, {});
  const ask = (webhookId: string, page: string[]): Promise<void> =>
    createResendMarks(db).ask(sampleResend('rsnd_1', { webhookId, page }));

  async function allPages(filter: Partial<UndeliveredFilter>, limit: number): Promise<string[]> {
    const queries = createDeliveryQueries(db);
    const ids: string[] = [];
    let after: DeliveryPosition | undefined;
    for (;;) {
      const wanted = { status: 'cancelled', ...filter, after } as const;
      const { found, readTo } = await queries.listUndelivered('comp_a', wanted, limit);
      ids.push(...found.map(({ id }) => id));
      if (readTo === null) return ids;
      after = readTo;
    }
  }

  it.each([1, 2, 3, 20])('are listed in order, in pages of %d', async (limit) => {
    expect(await allPages({}, limit)).toEqual(BY_MESSAGE);
    expect(await allPages({ webhookId: 'wh_1' }, limit)).toEqual(ofWebhook('wh_1'));
    expect(await recorded()).toBe(0);
  });

  it('are listed as cancelled at acceptance, and with no other reason or status', async () => {
    const queries = createDeliveryQueries(db);
    const { found } = await queries.listUndelivered('comp_a', { status: 'cancelled' }, 1);
    const createdAtMs = TODAY + 1;
    expect(found).toMatchObject([
      { status: 'cancelled', reason: 'webhook_disabled', createdAtMs, updatedAtMs: createdAtMs },
    ]);
    expect(await allPages({ reason: 'webhook_disabled' }, 9)).toEqual(BY_MESSAGE);
    expect(await allPages({ reason: 'expired' }, 9)).toEqual([]);
    expect(await allPages({ status: 'exhausted' }, 9)).toEqual([]);
  });

  it('are listed within a time', async () => {
    const bounds = { fromMs: TODAY - 1, beforeMs: TODAY + 1 };
    const within = BY_MESSAGE.slice(1, -2);
    expect(await allPages(bounds, 2)).toEqual(within);
    const own = new Set(ofWebhook('wh_2'));
    expect(await allPages({ ...bounds, webhookId: 'wh_2' }, 2)).toEqual(
      within.filter((id) => own.has(id)),
    );
  });

  it('get a document when a resend marks them, once, and stay in their place of the lists', async () => {
    const [first = '', , third = ''] = ofWebhook('wh_1');
    for (let n = 0; n < 2; n += 1) await ask('wh_1', [third, first]);
    expect(await recorded()).toBe(2);
    const [marked] = await createResendMarks(db).read('comp_a', [first]);
    const mark = { resendId: 'rsnd_1', attemptNumber: 1, state: 'asked' };
    expect(marked).toMatchObject({ status: 'cancelled', attemptCount: 0, mark });
    for (const limit of [1, 4]) {
      expect(await allPages({}, limit)).toEqual(BY_MESSAGE);
      expect(await allPages({ webhookId: 'wh_1' }, limit)).toEqual(ofWebhook('wh_1'));
    }
  });

  it('are in no list of cancelled ones after a resend has delivered them', async () => {
    const [first = '', ...others] = ofWebhook('wh_1');
    await ask('wh_1', [first]);
    await db.days.deliveries.of(first).updateOne({ _id: first }, { $set: { status: 'delivered' } });
    expect(await allPages({ webhookId: 'wh_1' }, 1)).toEqual(others);
    expect(await allPages({}, 1)).toEqual(BY_MESSAGE.filter((id) => id !== first));
    const resend = sampleResend('rsnd_2', { webhookId: 'wh_1' });
    expect(await createResendStore(db).count(resend)).toBe(others.length);
  });

  it('are the failed ones of a resend, oldest first, of its app and its reason', async () => {
    const resends = createResendStore(db);
    const resend = sampleResend('rsnd_1', { webhookId: 'wh_1' });
    const oldestFirst = ofWebhook('wh_1').reverse();
    const ids: string[] = [];
    for (let afterId: string | null = resend.afterId; afterId !== null;) {
      const page = await resends.nextPage({ ...resend, afterId }, 2);
      ids.push(...page.ids);
      afterId = page.lookedTo;
    }
    expect(ids).toEqual(oldestFirst);
    expect(await resends.count(resend)).toBe(oldestFirst.length);
    const pageOf = async (filter: object) =>
      (await resends.nextPage({ ...resend, filter }, 9)).ids.length;
    expect(await pageOf({ appId: 'app_2' })).toBe(1);
    expect(await pageOf({ reason: 'expired' })).toBe(0);
    expect((await resends.nextPage({ ...resend, outcome: 'timeout' }, 9)).ids).toEqual([]);
  });

  it('are counted for several webhooks, up to a limit', async () => {
    const count = (webhookIds: string[], limit: number): Promise<number> =>
      stated.count({ companyId: 'comp_a', webhookIds }, {}, limit);
    expect(await count(['wh_1', 'wh_2', 'wh_none'], 100)).toBe(STATED.length);
    expect(await count(['wh_1', 'wh_2'], 3)).toBe(3);
    expect(await count([], 9)).toBe(0);
  });

  it('make their message one of those that failed', async () => {
    const { messagesOfFailed } = createDeliveryQueries(db);
    const stating = [...new Set(STATED.map(({ messageId }) => messageId))].reverse();
    expect(await messagesOfFailed('comp_a', { status: 'cancelled' }, 9)).toEqual(stating);
    expect(await messagesOfFailed('comp_a', { status: 'cancelled' }, 2)).toEqual(
      stating.slice(0, 2),
    );
  });

  it('end a page when 2,500 were examined that all have a document, and go on behind them', async () => {
    const disabledTargets = new Set(['wh_many']);
    const many = Array.from({ length: 3_601 }, (_, n) =>
      // 600 of one time, which is more than are read at once.
      messageAt(TODAY + 10 + Math.max(0, n - 600), n, { targets: ['wh_many'], disabledTargets }),
    );
    await createMessageStore(db).insertAll(many);
    const ids = many.map(({ id }) => deliveryIdOf(id, 'wh_many'));
    await stated.record({ companyId: 'comp_a', webhookId: 'wh_many', page: ids });
    const of = { companyId: 'comp_a', webhookId: 'wh_many' };
    for (const order of ['oldest', 'newest'] as const) {
      const page = await stated.ofWebhook(of, {}, { limit: 1, order });
      expect(page.found).toEqual([]);
      expect(page.examined).toBeLessThan(3_601);
      const end = page.readTo?.deliveryId;
      const left = order === 'oldest' ? { fromId: end } : { beforeId: end };
      const last = await stated.ofWebhook(of, left, { limit: 1, order });
      expect(last).toEqual({ found: [], examined: 3_601 - page.examined, readTo: null });
    }
    expect(await stated.ofCompany('comp_a', {}, 1)).toMatchObject({ found: [], examined: 2_500 });
  });
});
