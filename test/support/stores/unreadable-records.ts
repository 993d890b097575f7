import { randomBytes } from 'node:crypto';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import type { IHeaders, Message } from 'kafkajs';
import type { Namespace } from '../process/namespace.ts';
import { contentOf } from '@posthorn/platform/kafka/record-log.ts';
import { createRecordMac } from '@posthorn/platform/kafka/record-mac.ts';
import { keyRingSchema } from '@posthorn/platform/security/vault.ts';
import { openKafka } from './open-kafka.ts';

type SigningNamespace = Namespace & { ENCRYPTION_KEYS?: string };

/** Stands in payloads that must not be shown anywhere. */
export const MARKER = 'hush-hush';

/** Leaves room for the record's key and MAC in a batch of 1,048,588 bytes, but none for the headers of a dead letter. */
const FULL_BATCH_BYTES = 1_048_330;
const DEEP = 400_000;

const oddHeaders: IHeaders = {
  'due-at': 'tomorrow',
  'turn-at': '-1',
  traceparent: 'not a trace',
  reason: 'mine',
  requestId: Buffer.from([0xff, 0x00, 0x0a]),
  twice: ['a', 'b'],
  '': 'nameless',
  'source-topic': 'elsewhere',
  'cut-from-bytes': 'many',
  constructor: 'x',
  ['__proto__']: 'x',
};

/** Returns records that cannot be read, as a fault or another program may write them. */
export function unreadableRecords(ref: DeliveryRef): Record<string, Message> {
  const key = ref.webhookId;
  const text = Buffer.from(`not JSON, ${MARKER}`);
  return {
    text: { key, value: text },
    'nine hundred kilobytes': { key, value: randomBytes(900_000) },
    'deep JSON': { key, value: `${'['.repeat(DEEP)}${']'.repeat(DEEP)}\n` },
    'a later version': { key, value: `${JSON.stringify({ ...ref, version: 2 })}\n` },
    'no value': { key, value: null },
    'no key': { key: null, value: text },
    'a full batch': { key, value: Buffer.alloc(FULL_BATCH_BYTES, 'x') },
  };
}

/** Returns a record whose headers no process of Posthorn writes, so that nobody can have signed it. */
export function oddRecords(ref: DeliveryRef): Record<string, Message> {
  const value = Buffer.from(`not JSON, ${MARKER}`);
  return { 'odd headers': { key: ref.webhookId, value, headers: oddHeaders } };
}

/** Returns records that can be read except for the time when they are due. */
export function undueRecords(ref: DeliveryRef): Record<string, Message> {
  const key = ref.webhookId;
  const farMs = 999_999_999_999_999;
  const dueAt = (dueAtMs: number) => encodeRetryDue({ ...ref, attemptNumber: 2, dueAtMs });
  return {
    'no due time': { key, value: dueAt(1) },
    'due at another time': { key, value: dueAt(1), headers: { 'due-at': '2' } },
    'due in thirty thousand years': {
      key,
      value: dueAt(farMs),
      headers: { 'due-at': String(farMs) },
    },
  };
}

type RecordsByTopic = Readonly<Record<string, Readonly<Record<string, Message>>>>;

/** Writes records as a process of Posthorn with a fault might, each in a batch of its own. */
export async function writeSignedRecords(
  env: SigningNamespace,
  byTopic: RecordsByTopic,
): Promise<void> {
  const mac = createRecordMac(keyRingSchema.parse(env.ENCRYPTION_KEYS));
  const signed = Object.entries(byTopic).map(([name, records]) => {
    const topic = env.TOPIC_PREFIX + name;
    const messages = Object.entries(records).map(([what, message]) => {
      const { key, value, headers = {} } = message;
      const content = contentOf({
        key: key === null || key === undefined ? null : Buffer.from(key),
        value: value === null ? null : Buffer.from(value),
        headers,
      });
      const { headers: { mac: code = '' } = {} } = mac.sign({ topic, ...content });
      return [what, { ...message, headers: { ...headers, mac: code } }] as const;
    });
    return [name, Object.fromEntries(messages)] as const;
  });
  await writeRecords(env, Object.fromEntries(signed));
}

/** Writes records as another program may, each in a batch of its own. */
export async function writeRecords(env: Namespace, byTopic: RecordsByTopic): Promise<void> {
  const kafka = openKafka(env);
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  for (const [name, records] of Object.entries(byTopic)) {
    const topic = env.TOPIC_PREFIX + name;
    for (const message of Object.values(records))
      await producer.send({ topic, messages: [message] });
  }
  await producer.disconnect();
}
