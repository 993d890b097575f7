import {
  type ICustomPartitioner,
  type IHeaders,
  type Kafka,
  Partitioners,
  type Producer,
  type RecordMetadata,
} from 'kafkajs';
import { setTimeout as wait } from 'node:timers/promises';
import { NO_VALUE } from './patches/encoder.ts';
import type { TrackedMessage, TrackedSend } from './patches/produce.ts';
import { byTopic, type CopiedRecord, type OutgoingRecord } from './record-log.ts';

/** Sends records of any topics. The caller splits them into requests that a broker accepts. */
interface RecordProducer {
  /** Resolves when every in-sync replica has all of them. After a rejection some may be stored. */
  send: (records: readonly (OutgoingRecord | CopiedRecord)[]) => Promise<void>;
  close: () => Promise<void>;
}

/** The last request takes ten seconds at most, and the caller waits for sixty (kafka-record-log.ts). */
const SEND_MS = 50_000;
const MAX_RETRIES = 3;
/** A partition whose broker has died gets another leader after about 10 s. */
const RETRIED_FOR_MS = 40_000;

/** Resolves when a send that has failed this often is to be retried. */
type WaitForRetry = (failures: number) => Promise<void>;

/** Called with the replies to a send in which every record was stored. Times are of the monotonic clock. */
type OnReplies = (
  replies: readonly RecordMetadata[],
  sent: { askedAtMs: number; repliedAtMs: number },
) => void;

interface ProducerOptions {
  /** 100 ms, 200 ms, … 1 s by default. */
  waitForRetry?: WaitForRetry;
  onReplies?: OnReplies;
}

/** Connects a producer that waits for all in-sync replicas. */
export async function connectProducer(
  kafka: Kafka,
  {
    waitForRetry = (failures) => wait(Math.min(50 * 2 ** failures, 1_000)),
    onReplies = () => undefined,
  }: ProducerOptions = {},
): Promise<RecordProducer> {
  const producer = kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner,
    // kafkajs notes which brokers have answered, not which records they stored: when a partition that one broker
    // refused has moved to a broker that has answered, kafkajs 2.2.4 never sends its records and reports success
    // (tulios/kafkajs#1303). So the retries are made here.
    retry: { retries: 0 },
  });
  await producer.connect();
  return {
    send: (records) => sendUntilStored({ producer, waitForRetry, onReplies }, track(records)),
    close: () => producer.disconnect(),
  };
}

function track(records: readonly (OutgoingRecord | CopiedRecord)[]): TrackedMessage[] {
  const send: TrackedSend = { endsAtMs: performance.now() + SEND_MS, requests: [] };
  return records.map(({ topic, key, value, headers }) => ({
    topic,
    key,
    value,
    ...(headers && { headers: headersToWrite(headers) }),
    isStored: false,
    send,
  }));
}

/**
 * Sends the records again that are not known to be stored, also after kafkajs has reported success: it has more ways to leave
 * records out than one. Rejects with the last error.
 */
async function sendUntilStored(sender: Sender, all: readonly TrackedMessage[]): Promise<void> {
  const startedMs = performance.now();
  let left = all;
  for (let failures = 1; ; failures += 1) {
    const failure = await send(sender, left);
    left = left.filter(({ isStored }) => !isStored);
    if (left.length === 0) return;
    const error = failure ?? new LeftOutError('kafkajs did not send every record');
    const isPartlyStored = left.length < all.length;
    const elapsedMs = performance.now() - startedMs;
    if (!mayRetry(error, { failures, isPartlyStored, elapsedMs })) throw error;
    await sender.waitForRetry(failures);
  }
}

interface Sender extends Required<ProducerOptions> {
  producer: Producer;
}

/** A header without a value, which its types leave out, is null as it was read. */
function headersToWrite(headers: NonNullable<CopiedRecord['headers']>): IHeaders {
  const written: IHeaders = {};
  const valueOf = (value: Buffer | string | null): Buffer | string => value ?? NO_VALUE;
  for (const [name, value] of Object.entries(headers)) {
    const to = Array.isArray(value) ? value.map(valueOf) : valueOf(value ?? null);
    Object.defineProperty(written, name, { value: to, enumerable: true });
  }
  return written;
}

/** Resolves when every request of the send has ended, with its error, or null when kafkajs reports success. */
async function send(
  { producer, onReplies }: Sender,
  messages: readonly TrackedMessage[],
): Promise<Error | null> {
  const topicMessages = byTopic(messages, (topic, ofTopic) => ({ topic, messages: ofTopic }));
  const askedAtMs = performance.now();
  try {
    const replies = await producer.sendBatch({ acks: -1, topicMessages });
    onReplies(replies, { askedAtMs, repliedAtMs: performance.now() });
    return null;
  } catch (error) {
    await Promise.all(messages[0]?.send.requests ?? []);
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** kafkajs has reported success, and messages were in no request. */
export class LeftOutError extends Error {
  override readonly name = 'LeftOutError';
}

interface FailedSend {
  /** Requests of this send that have failed. */
  failures: number;
  isPartlyStored: boolean;
  /** Since the send began, in milliseconds. */
  elapsedMs: number;
}

/**
 * Returns true when the producer sends the remaining messages again. After its last failure the caller, which logs it,
 * repeats the whole send: copies of the stored ones. So a send that is stored in part has more time than another one.
 */
export function mayRetry(
  error: Error,
  { failures, isPartlyStored, elapsedMs }: FailedSend,
): boolean {
  if (!isRetriable(error) || elapsedMs >= RETRIED_FOR_MS) return false;
  return isPartlyStored || failures <= MAX_RETRIES;
}

/**
 * kafkajs, which may not retry, wraps the errors after which it would have retried. When it fails to look up the leaders
 * after a failure, it wraps that as an error that it would not retry, with the real one as its cause.
 */
function isRetriable({ name, cause }: Error): boolean {
  if (name === 'LeftOutError' || name === 'KafkaJSNumberOfRetriesExceeded') return true;
  return cause instanceof Error && 'retriable' in cause && cause.retriable === true;
}

/** The broker's errors for one record, and for the batch that kafkajs makes of the records of a request. */
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/** Returns true when a broker refused records for their size; sending them again cannot succeed. */
export function isRecordTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('type' in error && TOO_LARGE.has(String(error.type))) || isRecordTooLarge(error.cause);
}

/** The partitioner of kafkajs lists the partitions with a leader for each record, and hashes with 64-bit objects. */
const createPartitioner: ICustomPartitioner = () => {
  const withoutKey = Partitioners.DefaultPartitioner();
  return (args) => {
    const { message, partitionMetadata } = args;
    if (message.key === null || message.key === undefined) return withoutKey(args);
    return partitionOf(message.key, partitionMetadata.length);
  };
};

/** Returns the partition of a key: murmur2 without the sign bit, as the Java client does. */
export function partitionOf(key: string | Buffer, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
}

const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/** https://github.com/apache/kafka/blob/4.1/clients/src/main/java/org/apache/kafka/common/utils/Utils.java */
function murmur2(data: Buffer): number {
  const { length } = data;
  let hash = SEED ^ length;
  let at = 0;
  for (; length - at >= 4; at += 4) {
    let block = Math.imul(data.readInt32LE(at), M);
    block ^= block >>> R;
    hash = Math.imul(hash, M) ^ Math.imul(block, M);
  }
  if (at < length) {
    hash ^= data.readUIntLE(at, length - at);
    hash = Math.imul(hash, M);
  }
  hash ^= hash >>> 13;
  hash = Math.imul(hash, M);
  return hash ^ (hash >>> 15);
}
