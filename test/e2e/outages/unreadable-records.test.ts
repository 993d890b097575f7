import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { encodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { eventually } from '../../support/time/eventually.ts';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { metricOf } from '../../support/process/traffic.ts';
import { runProgram } from '../../support/process/service-process.ts';
import {
  MARKER,
  oddRecords,
  undueRecords,
  unreadableRecords,
  writeRecords,
  writeSignedRecords,
} from '../../support/stores/unreadable-records.ts';

const DELAY_TOPICS = ['retry.200ms', 'retry.400ms', 'deferred.200ms'];
const TOPICS = ['message-created', 'delivery-failed', 'retry-due', 'slow-lane', ...DELAY_TOPICS];

const DEAD_LETTERS_METRIC = 'posthorn_dead_letter_records_total';

interface ShownLetter {
  id: string;
  at: string;
  reason: string;
  sourceTopic: string;
  messageId: string | null;
  webhookId: string | null;
}

interface List {
  matched: number;
  letters: ShownLetter[];
}

describe('Records that cannot be read [security]', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let mongo: MongoConnection;
  let resources: Resources;
  let webhookId: string;
  let ref: DeliveryRef;
  let written: Record<string, object>;

  beforeAll(async () => {
    // One partition, so that later records lie behind them.
    posthorn = await startPosthorn({
      TOPIC_PARTITIONS: '1',
      RETRY_DELAYS: '200ms,400ms',
      DEFERRAL_DELAYS: '200ms,1m',
    });
    receiver = await startReceiver();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    resources = createResources(posthorn.api);
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
    const { companyId } = posthorn;
    const owner = { companyId, appId: null, createdAtMs: Date.now() };
    ref = { messageId: systemIds('msg'), webhookId, ...owner };
    const byTopic = TOPICS.map((topic) => {
      const undue = DELAY_TOPICS.includes(topic) ? undueRecords(ref) : {};
      return { topic, signed: unreadableRecords(ref), unsigned: { ...oddRecords(ref), ...undue } };
    });
    written = Object.fromEntries(
      byTopic.map(({ topic, signed, unsigned }) => [topic, { ...signed, ...unsigned }]),
    );
    await writeSignedRecords(
      posthorn.env,
      Object.fromEntries(byTopic.map(({ topic, signed }) => [topic, signed])),
    );
    // The due times of these must stop nothing.
    await writeRecords(
      posthorn.env,
      Object.fromEntries(byTopic.map(({ topic, unsigned }) => [topic, unsigned])),
    );
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  const admin = (...args: string[]) =>
    runProgram(ADMIN, ['dead-letters', ...args, '--json'], posthorn.env);
  const list = async (...filters: string[]) => JSON.parse(await admin('list', ...filters)) as List;
  const replay = async (...args: string[]) => JSON.parse(await admin('replay', ...args)) as object;

  /** Returns the list, once the services have written so many dead letters. */
  async function listOf(count: number): Promise<List> {
    const { dispatcher, retry } = posthorn;
    const counts = () =>
      Promise.all([dispatcher, retry].map((each) => metricOf(each, DEAD_LETTERS_METRIC)));
    await eventually(
      `${count} dead letters`,
      async () => (await counts()).reduce((sum, each) => sum + each) >= count,
      60_000,
    );
    return list();
  }

  it('block no first attempt, no failure and no retry behind them', async () => {
    receiver.answerWith(failing(2));
    const { messageId, deliveryId } = await posthorn.api.send({ webhookId }, { behind: 'them' });
    const { attempts } = await resources.deliveryOnce('delivered', deliveryId);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['http_5xx', 'http_5xx', 'success']);
    expect(receiver.of(messageId)).toHaveLength(3);
  });

  it('block nothing behind them in the slow lane', async () => {
    const messageId = systemIds('msg');
    const { companyId, createdAtMs } = ref;
    await mongo.db.days.messages.of(messageId).insertOne({
      _id: messageId,
      companyId,
      appId: null,
      payload: '{"in":"the slow lane"}',
      targets: [webhookId],
      publisherId: 'gw_0',
      requestId: 'request-1',
      createdAt: new Date(createdAtMs),
    });
    const due = { ...ref, messageId, attemptNumber: 1, dueAtMs: createdAtMs };
    const value = encodeRetryDue({ ...due, trigger: 'first' });
    receiver.answerWith((response) => response.writeHead(200).end());
    await writeSignedRecords(posthorn.env, { 'slow-lane': { behind: { key: webhookId, value } } });
    await eventually('the delivery', () => receiver.of(messageId).length === 1);
  });

  it('become dead letters, every one of every topic, with the reason', async () => {
    const counts = TOPICS.map((topic) => Object.keys(written[topic] ?? {}).length);
    const total = counts.reduce((sum, count) => sum + count);
    const { matched, letters } = await listOf(total);
    expect(matched).toBe(total);
    const undue = DELAY_TOPICS.length * Object.keys(undueRecords(ref)).length;
    const unsigned = undue + TOPICS.length * Object.keys(oddRecords(ref)).length;
    const byReason = Map.groupBy(letters, ({ reason }) => reason);
    expect(byReason.get('unreadable_record')).toHaveLength(total - unsigned);
    expect(byReason.get('unproven_record')).toHaveLength(unsigned);
    const byTopic = Map.groupBy(letters, ({ sourceTopic }) => sourceTopic);
    const found = TOPICS.map((topic) => byTopic.get(posthorn.env.TOPIC_PREFIX + topic)?.length);
    expect(found).toEqual(counts);
  });

  it('are listed by filters, newest first, and without a payload', async () => {
    const own = await list('--source-topic', 'slow-lane', '--limit', '3');
    expect(own).toMatchObject({ matched: 8, letters: { length: 3 } });
    const times = own.letters.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().reverse());
    expect(await list('--reason', 'schedule_exhausted')).toEqual({ matched: 0, letters: [] });
    expect(await list('--since', new Date(Date.now() + 60_000).toISOString())).toMatchObject({
      matched: 0,
    });
    const readable = await list('--message', ref.messageId);
    expect(readable.matched).toBe(DELAY_TOPICS.length * Object.keys(undueRecords(ref)).length);
    const text = await runProgram(ADMIN, ['dead-letters', 'list'], posthorn.env);
    expect(text.trim().split('\n')).toHaveLength((await list()).matched + 1);
    expect(text + (await admin('list'))).not.toContain(MARKER);
  });

  it('are shown one by one, cut when they are large', async () => {
    const shown = async ({ id }: ShownLetter) => JSON.parse(await admin('show', id)) as object;
    const all = await Promise.all(
      (await list('--source-topic', 'delivery-failed')).letters.map(shown),
    );
    const headers = { twice: 'a,b', 'due-at': 'tomorrow' };
    const topic = `${posthorn.env.TOPIC_PREFIX}delivery-failed`;
    const begins = { text: `not JSON, ${MARKER}` };
    expect(all).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ bytes: 65_536, cutFromBytes: 1_048_330 }),
        expect.objectContaining({ begins, headers: expect.objectContaining(headers) }),
        expect.objectContaining({ key: '', begins, source: expect.objectContaining({ topic }) }),
      ]),
    );
    await expect(admin('show', '0:999999')).rejects.toThrow('There is no dead letter 0:999999.');
    await expect(admin('show', 'first')).rejects.toThrow('id must be partition:offset');
  });

  it('become new dead letters when they are replayed, and only then', async () => {
    const before = await list();
    const [letter] = (await list('--source-topic', 'retry.200ms')).letters.slice(-1);
    const counts = { matched: 1, republished: 1, resent: 0, skipped: {} };
    const id = letter?.id ?? '';
    expect(await replay(id, '--dry-run')).toEqual({ dryRun: true, ...counts });
    expect(await replay('--all', '--dry-run')).toMatchObject({
      matched: before.matched,
      skipped: { cut: TOPICS.length },
    });
    expect(await replay(id)).toEqual({ dryRun: false, ...counts });
    const after = await listOf(before.matched + 1);
    expect(after.matched).toBe(before.matched + 1);
    expect(after.letters[0]).toMatchObject({ sourceTopic: letter?.sourceTopic });
    await expect(admin('replay')).rejects.toThrow('Name a dead letter by its id');
  });
});
