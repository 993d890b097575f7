import { beforeAll, describe, expect, it } from '@jest/globals';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { DAY_MS, dayNumberOf, deliveryIdOf, firstIdAt, timePartOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { deliveryContract } from '../../../../../test/support/contract/delivery-contract.ts';
import { messageStoreContract } from '../../../../../test/support/contract/message-store-contract.ts';
import { stuckDeliveryContract } from '../../../../../test/support/contract/stuck-delivery-contract.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  openScratchDays,
} from '../../../../../test/support/stores/scratch-database.ts';
import { StoreUnavailableError } from '../../service/errors.ts';
import { collection } from '../collections.ts';
import { exportCompany } from '../companies/company-export.ts';
import { createCompanyRemoval, createRemovalStore } from '../companies/removals.ts';
import { documentsOf } from '../company-documents.ts';
import { asStoreError } from '../connect.ts';
import { createDeliveryStore } from '../messages/deliveries.ts';
import { createDeliveryQueries, createStuckDeliveries } from '../messages/delivery-queries.ts';
import { createPayloadErasure } from '../messages/erase-payloads.ts';
import { CHECK_SHARES, createMessageChecks } from '../messages/message-checks.ts';
import { createMessageQueries } from '../messages/message-queries.ts';
import { createMessageStore } from '../messages/messages.ts';
import { createResendMarks } from '../webhooks/resend-marks.ts';
import { createResendStore } from '../webhooks/resends.ts';
import { type Database, withDays } from './days.ts';

const TODAY = dayNumberOf(Date.now()) * DAY_MS;
const YESTERDAY = TODAY - DAY_MS;

messageStoreContract(async () => {
  const { db, drop } = await openScratchDays();
  return { store: createMessageStore(db), close: drop };
});

deliveryContract(async () => {
  const { db, drop } = await openScratchDays();
  const queries = createDeliveryQueries(db);
  return {
    store: createDeliveryStore(db),
    read: async (id) => (await queries.findMany('comp_a', [id]))[0],
    close: drop,
  };
});

stuckDeliveryContract(async () => {
  const { db, drop } = await openScratchDays();
  return {
    stuck: createStuckDeliveries(db),
    deliveries: createDeliveryStore(db),
    async clear() {
      for (const documents of db.days.deliveries.within({})) await documents.deleteMany({});
    },
    close: drop,
  };
});

const message = (ms: number, changes: Partial<Message> = {}): Message =>
  sampleMessage(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`, { appId: 'app_1', ...changes });

/** One of the day before yesterday, two of yesterday, of which the last is of its last millisecond, and one of today. */
const MESSAGES = [YESTERDAY - 1, YESTERDAY, TODAY - 1, TODAY].map((ms) => message(ms));
const IDS = MESSAGES.map(({ id }) => id);
const NEWEST_FIRST = [...IDS].reverse();
const DELIVERY_IDS = IDS.map((id) => deliveryIdOf(id, 'wh_1'));
const atMost = (limit: number) => ({ messages: limit, targets: 99 });

describe('messages and deliveries of several days', () => {
  const database = duringTests(openScratchDays, ({ drop }) => drop());
  let db: Database;

  beforeAll(async () => {
    const layout = { beginMs: 0, retentionMs: 30 * DAY_MS };
    db = withDays(database.db, { layout: () => layout, nowMs: Date.now, earlierMs: Date.now });
    expect(await createMessageStore(db).insertAll(MESSAGES)).toEqual(IDS.map(() => 'stored'));
  });

  async function plantDeliveries(status: 'pending' | 'exhausted' | 'delivered'): Promise<void> {
    for (const documents of db.days.deliveries.within({})) await documents.deleteMany({});
    const settled = MESSAGES.map((each) => unattemptedDelivery(each, 'wh_1', 1));
    await createDeliveryStore(db).insertAll(settled.map((each) => ({ ...each, status })));
  }

  it('are each in the collection of their day', async () => {
    const counts = db.days.messages
      .within({ fromId: IDS[0], beforeId: IDS.at(-1) })
      .map((documents) => documents.countDocuments({}));
    expect(await Promise.all(counts)).toEqual([1, 2, 1]);
  });

  it('are stored with the outcome of each, in the order of the batch', async () => {
    const [old, , last] = MESSAGES;
    const added = message(TODAY + 7, { companyId: 'comp_b' });
    if (!old || !last) throw new Error('there are four messages');
    const outcomes = await createMessageStore(db).insertAll([added, last, old]);
    expect(outcomes).toEqual(['stored', 'refused', 'refused']);
  });

  it('are listed newest first, a page at a time', async () => {
    const queries = createMessageQueries(db);
    const list = async (filter: object, limit: number) =>
      (await queries.listOutlines('comp_a', filter, atMost(limit))).map(({ id }) => id);
    expect(await list({}, 9)).toEqual(NEWEST_FIRST);
    expect(await list({ appId: 'app_1', webhookId: 'wh_1' }, 2)).toEqual(NEWEST_FIRST.slice(0, 2));
    expect(await list({ beforeId: IDS[2] }, 9)).toEqual(NEWEST_FIRST.slice(2));
    expect(await list({ fromId: IDS[1], beforeId: IDS[3] }, 9)).toEqual([IDS[2], IDS[1]]);
    const outlines = await queries.outlinesOf('comp_a', IDS, 2);
    expect(outlines.map(({ id }) => id)).toEqual(NEWEST_FIRST.slice(0, 2));
    expect((await queries.findMany('comp_a', IDS, 999)).map(({ id }) => id)).toEqual(NEWEST_FIRST);
    expect(await queries.findOne('comp_a', IDS[0] ?? '')).toEqual(MESSAGES[0]);
    expect(await queries.listIds('comp_a', {}, 9)).toEqual(NEWEST_FIRST);
    expect(await queries.listIds('comp_a', { webhookId: 'wh_1' }, 2)).toEqual(
      NEWEST_FIRST.slice(0, 2),
    );
    const ofToday = queries.outlinesAt('comp_a', timePartOf(firstIdAt('msg', TODAY)));
    expect((await Array.fromAsync(ofToday)).map(({ id }) => id)).toEqual([IDS[3]]);
  });

  it('are read for their publisher in the order in which they were stored', async () => {
    const store = createMessageStore(db);
    const page = { publisherId: 'gw_1', afterId: IDS[0] ?? '', limit: 2 };
    expect((await store.pageOf(page)).map(({ id }) => id)).toEqual(IDS.slice(1, 3));
    expect((await store.pageOf({ ...page, limit: 9 })).map(({ id }) => id)).toContain(IDS[3]);
    const read: string[] = [];
    let afterId: string | null = '';
    while (afterId !== null) {
      const found = await store.boundedPageOf({ ...page, afterId, maxRead: 2 });
      read.push(...found.messages.map(({ id }) => id));
      afterId = found.readTo;
    }
    expect(read.slice(0, 4)).toEqual(IDS);
  });

  it('are read for a publisher whose clock is days ahead', async () => {
    const aheadMs = Date.now() + 3 * DAY_MS;
    const [first, second] = [aheadMs, aheadMs + DAY_MS].map((ms) =>
      message(ms, { publisherId: 'gw_ahead', companyId: 'comp_c' }),
    );
    if (!first || !second) throw new Error('there are two messages');
    const store = createMessageStore(db);
    await store.insertAll([first, second]);
    const page = { publisherId: 'gw_ahead', afterId: firstIdAt('msg', aheadMs), limit: 9 };
    expect((await store.pageOf(page)).map(({ id }) => id)).toEqual([first.id, second.id]);
    const bounded = await store.boundedPageOf({ ...page, maxRead: 9 });
    expect(bounded).toMatchObject({ messages: [{ id: first.id }], readTo: first.id });
    const rest = await store.boundedPageOf({ ...page, afterId: first.id, maxRead: 9 });
    expect(rest).toMatchObject({ messages: [{ id: second.id }], readTo: null });
  });

  it('are checked in the order of their ids', async () => {
    const checks = createMessageChecks(db);
    const found: string[][] = [];
    for (let share = 0; share < CHECK_SHARES; share += 1) {
      const span = { share, afterId: '', beforeMs: TODAY + 1, maxMessages: 3, maxTargets: 99 };
      const pages = await Array.fromAsync(checks.pagesOf(span));
      found.push(pages.flatMap(({ messages }) => messages.map(({ id }) => id)));
    }
    expect(found).toEqual(found.map((ids) => [...ids].sort()));
    expect(found.flat().sort()).toEqual([...IDS].sort());
    await plantDeliveries('pending');
    expect(await checks.recordedAmong([...DELIVERY_IDS, 'dlv_none'])).toEqual(
      new Set(DELIVERY_IDS),
    );
  });

  it('are pending, overdue and cancelled across days', async () => {
    await plantDeliveries('pending');
    const queries = createDeliveryQueries(db);
    const count = (limit: number) => queries.countPending('comp_a', 'wh_1', [], limit);
    expect([await count(9), await count(3)]).toEqual([4, 3]);
    const overdue = await createStuckDeliveries(db).findOverdue(TODAY + 1, 3);
    expect(overdue.map(({ id }) => id)).toEqual(DELIVERY_IDS.slice(0, 3));
    const { cancelPending } = createRemovalStore(db);
    const cancel = () => cancelPending('comp_a', ['wh_1'], { limit: 3, atMs: 9 });
    expect([await cancel(), await cancel(), await cancel()]).toEqual([3, 1, 0]);
    const states = await createDeliveryStore(db).statesOf(DELIVERY_IDS);
    expect([...states.values()].map(({ status }) => status)).toEqual(
      DELIVERY_IDS.map(() => 'cancelled'),
    );
  });

  it('are found by their failures and resent oldest first', async () => {
    await plantDeliveries('exhausted');
    const queries = createDeliveryQueries(db);
    const failed = (filter: object, limit: number) =>
      queries.messagesOfFailed('comp_a', { status: 'exhausted', ...filter }, limit);
    expect(await failed({}, 9)).toEqual(NEWEST_FIRST);
    expect(await failed({ beforeId: IDS[3] }, 2)).toEqual(NEWEST_FIRST.slice(1, 3));
    const resends = createResendStore(db);
    const resend = sampleResend('rsnd_1', { afterId: DELIVERY_IDS[0] ?? '' });
    expect((await resends.nextPage(resend, 2)).ids).toEqual(DELIVERY_IDS.slice(1, 3));
    expect((await resends.nextPage(resend, 9)).ids).toEqual(DELIVERY_IDS.slice(1));
    expect(await resends.count(resend)).toBe(3);
    const marks = createResendMarks(db);
    await marks.ask(sampleResend('rsnd_2', { page: DELIVERY_IDS }));
    expect([...(await marks.askedNumbers(DELIVERY_IDS)).keys()]).toEqual(DELIVERY_IDS);
    await marks.free('comp_a', 'rsnd_2', DELIVERY_IDS);
    const marked = await marks.read('comp_a', DELIVERY_IDS);
    expect(marked.map(({ mark }) => mark?.state)).toEqual(DELIVERY_IDS.map(() => 'failed'));
  });

  it('that have expired are not used any more while their day is still there', async () => {
    // The first one of yesterday has expired, and not the last one.
    const layout = { beginMs: 0, retentionMs: DAY_MS / 2 };
    const nowMs = (): number => TODAY + DAY_MS / 2 - 1;
    const later = withDays(Object.create(db) as Database, {
      layout: () => layout,
      nowMs,
      earlierMs: nowMs,
    });
    const kept = DELIVERY_IDS.slice(2);
    await plantDeliveries('pending');
    expect(await createDeliveryQueries(later).countPending('comp_a', 'wh_1', [], 9)).toBe(2);
    const overdue = await createStuckDeliveries(later).findOverdue(TODAY + 1, 9);
    expect(overdue.map(({ id }) => id)).toEqual(kept);
    await plantDeliveries('exhausted');
    const resends = createResendStore(later);
    const resend = sampleResend('rsnd_3', { afterId: '' });
    expect(await resends.count(resend)).toBe(2);
    expect((await resends.nextPage(resend, 9)).ids).toEqual(kept);
  });

  it('are erased when they are delivered, exported, and removed with their company', async () => {
    await plantDeliveries('delivered');
    const recorded = IDS.map((messageId, n) => {
      return { messageId, companyId: 'comp_a', deliveryId: DELIVERY_IDS[n] ?? '' };
    });
    expect(await createPayloadErasure(db).eraseOrNote(recorded)).toEqual([]);
    const payloads = await createMessageStore(db).payloadsOf(IDS);
    expect([...payloads.values()].map(({ isErased }) => isErased)).toEqual(IDS.map(() => true));
    await collection(db, 'companies').insertOne({
      _id: 'comp_a',
      name: 'C',
      createdAt: new Date(),
    });
    const things = await Array.fromAsync(exportCompany(db, 'comp_a', null));
    expect(things.slice(1).map(({ id }) => id)).toEqual(
      IDS.flatMap((id, index) => [id, DELIVERY_IDS[index]]),
    );
    const removal = createCompanyRemoval(db);
    const removed: number[] = [];
    do removed.push(await removal.removeSome('comp_a', 100));
    while (removed.at(-1) !== 0);
    expect(removed).toEqual([2, 4, 2, 0]);
  });

  it('that a publisher stores late on an older day are not left behind those of the next one', async () => {
    const [late, next] = [TODAY - 2, TODAY + 1].map((ms) =>
      message(ms, { publisherId: 'gw_late' }),
    );
    if (!late || !next) throw new Error('there are two messages');
    const store = createMessageStore(db);
    await store.insertAll([next]);
    // The older day is read first, and has nothing yet.
    const yesterday = db.days.messages.of(late.id);
    const { within } = db.days.messages;
    let reads = 0;
    const slowly = {
      ...db.days.messages,
      within: (span: object) =>
        within(span).map((documents) =>
          documents.collectionName === yesterday.collectionName
            ? new Proxy(documents, {
                get(target, name) {
                  if (name !== 'find' || (reads += 1) > 1)
                    return Reflect.get(target, name) as never;
                  return () => target.find({ _id: '' });
                },
              })
            : documents,
        ),
    };
    await store.insertAll([late]);
    const slow = createMessageStore(
      Object.assign(Object.create(db) as Database, { days: { ...db.days, messages: slowly } }),
    );
    const page = { publisherId: 'gw_late', afterId: IDS[1] ?? '', limit: 9 };
    expect((await slow.pageOf(page)).map(({ id }) => id)).toEqual([late.id, next.id]);
  });
});

describe('read time', () => {
  /** More than a read takes that ends. */
  const MAX_READ_MS = 60_000;

  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let bounded: Database;
  let impatient: Database;

  beforeAll(async () => {
    const layout = { beginMs: 0, retentionMs: DAY_MS };
    const days = { layout: () => layout, nowMs: () => 0, earlierMs: () => 0 };
    // As in `connectMongo`. The scratch database itself stays as it is.
    const boundedBy = (maxReadMs: number): Database =>
      withDays(Object.create(database.db) as mongo.Db, { ...days, maxReadMs });
    [bounded, impatient] = [boundedBy(MAX_READ_MS), boundedBy(100)];
    await collection(database.db, 'projects').insertOne({
      _id: 'proj_1',
      companyId: 'comp_a',
      name: 'Shop',
      environment: 'production',
      description: '',
      createdAt: new Date(),
      updatedAt: new Date(),
    });
  });

  /** Returns the commands that are sent meanwhile. */
  async function commandsOf(run: () => Promise<unknown>): Promise<mongo.Document[]> {
    const commands: mongo.Document[] = [];
    const listen = ({ command }: mongo.CommandStartedEvent): void => void commands.push(command);
    const { client } = database.db;
    client.on('commandStarted', listen);
    await run().finally(() => client.off('commandStarted', listen));
    return commands;
  }

  const NEVER_ENDS = { $where: 'while (true) {}' };

  describe('the database of requests', () => {
    it.each<[string, (db: Database) => Promise<unknown>]>([
      ['find', (db) => documentsOf(db, 'projects', 'comp_a').find(NEVER_ENDS).toArray()],
      ['findOne', (db) => documentsOf(db, 'projects', 'comp_a').findOne(NEVER_ENDS)],
    ])(
      'ends a read in MongoDB that takes too long, as if MongoDB were away: %s',
      async (_name, read) => {
        const error = await read(impatient).catch((thrown: unknown) => thrown);
        expect(asStoreError(error)).toBeInstanceOf(StoreUnavailableError);
      },
    );

    it.each<[string, (db: Database) => Promise<unknown>]>([
      ['find', (db) => collection(db, 'projects').find().toArray()],
      ['findOne', (db) => collection(db, 'projects').findOne({ _id: 'proj_1' })],
      ['aggregate', (db) => collection(db, 'projects').aggregate([]).toArray()],
      ['countDocuments', (db) => collection(db, 'projects').countDocuments({})],
      ['the documents of a company', (db) => documentsOf(db, 'projects', 'comp_a').count({})],
      ['messages', (db) => db.days.messages.of('msg_1').findOne({ _id: 'msg_1' })],
    ])('gives MongoDB a time for each read, and other work has none: %s', async (_name, read) => {
      const [sent] = await commandsOf(() => read(bounded));
      expect(sent?.maxTimeMS).toBe(MAX_READ_MS);
      const [unbounded] = await commandsOf(() => read(database.db));
      expect(unbounded).not.toHaveProperty('maxTimeMS');
    });

    it('finds the same documents, and gives writes no time', async () => {
      const projects = documentsOf(bounded, 'projects', 'comp_a');
      const commands = await commandsOf(() =>
        projects.updateOne({ _id: 'proj_1' }, { $set: { name: 'Mall' } }),
      );
      for (const command of commands) expect(command).not.toHaveProperty('maxTimeMS');
      expect(await collection(database.db, 'projects').findOne({ _id: 'proj_1' })).toMatchObject({
        name: 'Mall',
      });
    });
  });
});
