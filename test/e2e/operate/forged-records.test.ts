import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import {
  encodeDeliveryFailed,
  encodeMessageCreated,
  encodeRetryDue,
} from '@posthorn/domain/records/records.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Message as KafkaRecord } from 'kafkajs';
import { createResources } from '../../support/api/resources.ts';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { metricOf } from '../../support/process/traffic.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import { writeRecords } from '../../support/stores/unreadable-records.ts';
import { eventually } from '../../support/time/eventually.ts';

const DUE_TOPICS = ['retry-due', 'slow-lane', 'retry.200ms', 'deferred.100ms'];
const TOPICS = ['message-created', 'delivery-failed', ...DUE_TOPICS];
const STRANGER = 'of a stranger';

let posthorn: Posthorn;
let receiver: Receiver;
let webhookId: string;

beforeAll(async () => {
  posthorn = await startPosthorn({ RETRY_DELAYS: '200ms', DEFERRAL_DELAYS: '100ms,1m' });
  receiver = await startReceiver();
  ({ webhookId } = await posthorn.api.createTarget(receiver.url));
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

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

async function unprovenCount(): Promise<number> {
  const services = [posthorn.dispatcher, posthorn.retry];
  const counts = await Promise.all(services.map(unprovenCountOf));
  return counts.reduce((sum, each) => sum + each);
}

async function untilRefused(count: number): Promise<void> {
  await eventually(`${count} refused records`, async () => (await unprovenCount()) === count);
}

async function letters(...filters: string[]): Promise<{ sourceTopic: string; detail: string }[]> {
  const listed = await runProgram(
    ADMIN,
    ['dead-letters', 'list', '--json', ...filters],
    posthorn.env,
  );
  return (JSON.parse(listed) as { letters: { sourceTopic: string; detail: string }[] }).letters;
}

describe('A record that Posthorn did not write [security]', () => {
  it('is refused on every topic, becomes a dead letter and is counted', async () => {
    const ref = inventedRef();
    await writeRecords(posthorn.env, forgedRecords(ref));
    await untilRefused(TOPICS.length);
    const found = await letters('--reason', 'unproven_record', '--message', ref.messageId);
    const topics = found.map(({ sourceTopic }) => sourceTopic);
    expect(topics.sort()).toEqual(TOPICS.map((topic) => posthorn.env.TOPIC_PREFIX + topic).sort());
    expect(receiver.received).toEqual([]);
  });

  it('is refused again when it is replayed', async () => {
    const before = await unprovenCount();
    const args = ['dead-letters', 'replay', '--reason', 'unproven_record', '--json'];
    const replayed = JSON.parse(await runProgram(ADMIN, args, posthorn.env)) as object;
    expect(replayed).toMatchObject({ republished: TOPICS.length });
    await untilRefused(before + TOPICS.length);
    expect(receiver.received).toEqual([]);
  });

  it('has no effect with the MAC of a record that was processed', async () => {
    const resources = createResources(posthorn.api);
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

function unprovenCountOf(service: Posthorn['retry']): Promise<number> {
  return metricOf(service, 'posthorn_dead_letter_records_total', 'unproven_record');
}
