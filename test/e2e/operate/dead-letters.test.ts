import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { encodeDeliveryFailed, encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Message as KafkaRecord } from 'kafkajs';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { printedAuditEvents } from '../../support/process/printed-audit-events.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { metricOf } from '../../support/process/traffic.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import {
  MARKER,
  oddRecords,
  undueRecords,
  unreadableRecords,
  writeRecords,
  writeSignedRecords,
} from '../../support/stores/unreadable-records.ts';
import { eventually } from '../../support/time/eventually.ts';

const DELAY_TOPICS = ['retry.200ms', 'retry.400ms', 'deferred.200ms'];
const TOPICS = ['message-created', 'delivery-failed', 'retry-due', 'slow-lane', ...DELAY_TOPICS];
const DUE_TOPICS = ['retry-due', 'slow-lane', ...DELAY_TOPICS];
const STRANGER = 'of a stranger';

interface ShownLetter {
  id: string;
  at: string;
  reason: string;
  sourceTopic: string;
  detail: string;
  messageId: string | null;
  webhookId: string | null;
}

interface List {
  matched: number;
  letters: ShownLetter[];
}

let posthorn: Posthorn;
const receiver = useReceiver();
let resources: Resources;
let webhookId: string;

beforeAll(async () => {
  // One partition, so that later records are behind earlier ones.
  posthorn = await startPosthorn({
    TOPIC_PARTITIONS: '1',
    RETRY_DELAYS: '200ms,400ms',
    DEFERRAL_DELAYS: '200ms,1m',
  });
  resources = createResources(posthorn.api);
  ({ webhookId } = await posthorn.api.createTarget(receiver.url));
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
});

const admin = (...args: string[]) =>
  runProgram(ADMIN, ['dead-letters', ...args, '--json'], posthorn.env);
const list = async (...filters: string[]) => JSON.parse(await admin('list', ...filters)) as List;
const replay = async (...args: string[]) => JSON.parse(await admin('replay', ...args)) as object;

/** Returns how many dead letters the services have written for a reason; '' for any. */
async function countOf(reason = ''): Promise<number> {
  const services = [posthorn.dispatcher, posthorn.retry];
  const metric = 'posthorn_dead_letter_records_total';
  const counts = await Promise.all(services.map((each) => metricOf(each, metric, reason)));
  return counts.reduce((sum, each) => sum + each);
}

function answerOk(): void {
  receiver.answerWith((response) => response.writeHead(200).end());
}

describe('Records that cannot be read [security]', () => {
  let ref: DeliveryRef;
  let written: Record<string, object>;

  beforeAll(async () => {
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
  });

  /** Returns the list, once the services have written so many dead letters. */
  async function listOf(count: number): Promise<List> {
    await eventually(`${count} dead letters`, async () => (await countOf()) >= count, 60_000);
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
    const mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
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
    await mongo.close();
    const due = { ...ref, messageId, attemptNumber: 1, dueAtMs: createdAtMs };
    const value = encodeRetryDue({ ...due, trigger: 'first' });
    answerOk();
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

/** A delivery of a message that was never accepted. */
function inventedRef(): DeliveryRef {
  const { companyId } = posthorn;
  return {
    messageId: systemIds('msg'),
    webhookId,
    companyId,
    appId: null,
    createdAtMs: Date.now(),
  };
}

/** One record for each topic, as a program writes it that knows the format and no key. */
function forgedRecords(ref: DeliveryRef): Record<string, Record<string, KafkaRecord>> {
  const payload = Buffer.from(JSON.stringify({ payload: STRANGER }));
  const dueAtMs = Date.now();
  const failed = { attemptNumber: 1, endedAtMs: dueAtMs, outcome: 'timeout', statusCode: null };
  const of = (value: Buffer): Record<string, KafkaRecord> => ({
    forged: { key: webhookId, value, headers: { 'due-at': String(dueAtMs) } },
  });
  const due = of(encodeRetryDue({ ...ref, attemptNumber: 1, dueAtMs }));
  return {
    'message-created': of(encodeMessageCreated(ref, payload)),
    'delivery-failed': of(encodeDeliveryFailed({ ...ref, ...failed })),
    ...Object.fromEntries(DUE_TOPICS.map((topic) => [topic, due])),
  };
}

describe('A record that Posthorn did not write [security]', () => {
  const unprovenCount = (): Promise<number> => countOf('unproven_record');
  const untilRefused = (count: number): Promise<boolean> =>
    eventually(`${count} refused records`, async () => (await unprovenCount()) === count);

  it('is refused on every topic, becomes a dead letter, and is refused again when it is replayed', async () => {
    const before = await unprovenCount();
    const received = receiver.received.length;
    const ref = inventedRef();
    await writeRecords(posthorn.env, forgedRecords(ref));
    await untilRefused(before + TOPICS.length);
    const mine = ['--reason', 'unproven_record', '--message', ref.messageId];
    const topics = (await list(...mine)).letters.map(({ sourceTopic }) => sourceTopic);
    expect(topics.sort()).toEqual(TOPICS.map((topic) => posthorn.env.TOPIC_PREFIX + topic).sort());
    expect(await replay(...mine)).toMatchObject({ republished: TOPICS.length });
    await untilRefused(before + 2 * TOPICS.length);
    expect(receiver.received).toHaveLength(received);
  });

  it('has no effect with the MAC of a record that was processed', async () => {
    answerOk();
    const { messageId, deliveryId } = await posthorn.api.send({ webhookId }, { n: 1 });
    await resources.deliveryOnce('delivered', deliveryId);
    const [real] = await readTopic(posthorn.env, 'message-created', ({ value }) =>
      value.includes(messageId),
    );
    const { value = '', headers = {} } = real ?? {};
    const before = await unprovenCount();
    const changed = { key: webhookId, value: value.replace('{"n":1}', '{"n":2}'), headers };
    await writeRecords(posthorn.env, { 'message-created': { changed } });
    await untilRefused(before + 1);
    const behind = await posthorn.api.send({ webhookId }, { n: 3 });
    await resources.deliveryOnce('delivered', behind.deliveryId);
    expect(receiver.of(messageId)).toHaveLength(1);
  });

  it('is refused when it names a message that was accepted for this webhook', async () => {
    const before = await unprovenCount();
    const { messageId } = await posthorn.api.send({ webhookId }, { n: 3 });
    await eventually('the delivery', () => receiver.of(messageId).length === 1);
    await writeRecords(posthorn.env, forgedRecords({ ...inventedRef(), messageId }));
    await untilRefused(before + TOPICS.length);
    expect(receiver.of(messageId)).toHaveLength(1);
  });
});

describe('Dead letters of deliveries', () => {
  it('that are exhausted are delivered by a replay once the endpoint works again', async () => {
    receiver.answerWith(failing(99));
    const { webhookId: ownId } = await posthorn.api.createTarget(receiver.url);
    const sent = await Promise.all(
      [1, 2, 3].map((n) => posthorn.api.send({ webhookId: ownId }, { n, text: MARKER })),
    );
    for (const { deliveryId } of sent) await resources.deliveryOnce('exhausted', deliveryId);
    const mine = ['--webhook', ownId, '--reason', 'schedule_exhausted'];
    const { letters } = await eventually('the dead letters', async () => {
      const found = await list(...mine);
      return found.matched === sent.length ? found : null;
    });
    expect(new Set(letters.map(({ messageId }) => messageId))).toEqual(
      new Set(sent.map(({ messageId }) => messageId)),
    );
    expect(JSON.stringify(letters)).not.toContain(MARKER);

    answerOk();
    const counts = { matched: 3, republished: 0, resent: 3, skipped: {} };
    expect(await replay(...mine, '--dry-run')).toEqual({ dryRun: true, ...counts });
    const [first] = sent;
    const one = await replay('--message', first?.messageId ?? '');
    expect(one).toMatchObject({ matched: 1, resent: 1 });
    const { attempts } = await resources.deliveryOnce('delivered', first?.deliveryId ?? '');
    expect(attempts.map(({ number, resend }) => [number, resend])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ]);
    expect(await replay(...mine)).toMatchObject({ resent: 2, skipped: { delivered: 1 } });
    for (const { deliveryId, messageId } of sent) {
      await resources.deliveryOnce('delivered', deliveryId);
      expect(receiver.of(messageId)).toHaveLength(4);
    }
    const again = await replay(...mine);
    expect(again).toMatchObject({ matched: 3, resent: 0, skipped: { delivered: 3 } });
    const events = await printedAuditEvents(posthorn.env, 'dead_letters.replayed');
    // One for each replay that was not a dry run.
    expect(events.slice(-3).map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
    expect(events.at(-2)).toMatchObject({ companyId: null, actor: { kind: 'admin' } });
    expect(events.at(-2)?.changes).toContainEqual({ field: 'resent', before: null, after: 2 });
  });
});
