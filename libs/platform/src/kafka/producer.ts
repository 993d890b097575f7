import { type Kafka, type Message, Partitioners, type Producer } from 'kafkajs';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';
import { once } from './connect.ts';
import { byTopic, type OutgoingRecord } from './record-log.ts';

/** Sends records of any topics. The caller cuts them to what a broker accepts in one request. */
interface RecordProducer {
  /** Resolves when every in-sync replica has all of them. After a rejection some may be stored. */
  send: (records: readonly OutgoingRecord[]) => Promise<void>;
  close: () => Promise<void>;
}

/** The last request takes ten seconds at most, and the caller waits for sixty (kafka-record-log.ts). */
const SEND_MS = 50_000;

/** Resolves when a send that has failed this often is to be retried. */
type WaitForRetry = (failures: number) => Promise<void>;

/** Connects a producer that waits for all in-sync replicas. Between retries it waits 100 ms, 200 ms, … 1 s unless told otherwise. */
export async function connectProducer(
  kafka: Kafka,
  waitForRetry: WaitForRetry = (failures) => wait(Math.min(50 * 2 ** failures, 1_000)),
): Promise<RecordProducer> {
  patchProduce();
  const producer = createProducer(kafka);
  await producer.connect();
  return {
    send: (records) => sendUntilStored(producer, track(records), waitForRetry),
    close: () => producer.disconnect(),
  };
}

/**
 * kafkajs must not retry. It notes which brokers have answered, not which records they stored: when a partition that
 * one broker refused has moved to a broker that has answered, kafkajs 2.2.4 never sends its records and reports
 * success (tulios/kafkajs#1303).
 */
function createProducer(kafka: Kafka): Producer {
  return kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner,
    retry: { retries: 0 },
  });
}

/**
 * Sends again what is not known to be stored, also after kafkajs has reported success: it has more ways to leave
 * records out than one. Rejects with the last error.
 */
async function sendUntilStored(
  producer: Producer,
  all: readonly TrackedMessage[],
  waitForRetry: WaitForRetry,
): Promise<void> {
  const startedMs = performance.now();
  let left = all;
  for (let failures = 1; ; failures += 1) {
    const failure = await send(producer, left);
    left = left.filter(({ isStored }) => !isStored);
    if (left.length === 0) return;
    const error = failure ?? new LeftOutError('kafkajs did not send every record');
    const isPartlyStored = left.length < all.length;
    const elapsedMs = performance.now() - startedMs;
    if (!mayRetry(error, { failures, isPartlyStored, elapsedMs })) throw error;
    await waitForRetry(failures);
  }
}

/** Resolves when every request of the send has ended, with its error, or null when kafkajs reports success. */
async function send(
  producer: Producer,
  messages: readonly TrackedMessage[],
): Promise<Error | null> {
  try {
    await producer.sendBatch({ acks: -1, topicMessages: byTopic(messages, toTopicMessages) });
    return null;
  } catch (error) {
    await Promise.all(messages[0]?.send.requests ?? []);
    return error instanceof Error ? error : new Error(String(error));
  }
}

function track(records: readonly OutgoingRecord[]): TrackedMessage[] {
  const send: TrackedSend = { endsAtMs: performance.now() + SEND_MS, requests: [] };
  return records.map(({ topic, key, value, headers }) => ({
    topic,
    key,
    value,
    ...(headers && { headers: { ...headers } }),
    isStored: false,
    send,
  }));
}

function toTopicMessages(
  topic: string,
  messages: TrackedMessage[],
): { topic: string; messages: TrackedMessage[] } {
  return { topic, messages };
}

interface ProduceRequest {
  topicData: readonly {
    topic: string;
    partitions: readonly { partition: number; messages: readonly Partial<TrackedMessage>[] }[];
  }[];
}

/** The part of a broker of kafkajs, which has one connection for these requests, that is used here. */
export interface PatchedBroker {
  produce: (request: ProduceRequest) => Promise<unknown>;
  apiVersions: () => Promise<object>;
}

interface ProduceResponse {
  topics: readonly {
    topicName: string;
    partitions: readonly { partition: number; errorCode: number }[];
  }[];
}

/** The part of kafkajs's description of a Produce request that is used here. */
export interface PatchedProtocol {
  protocol: (of: { version: number }) => (options: object) => {
    response: { parse: (response: ProduceResponse) => Promise<unknown> };
  };
}

/**
 * A Produce request without an answer is repeated on the same connection. A broker that was frozen executes all of
 * them: after 30 s it had up to three copies of what was under way, 11 % more records. After the patch a broker that has
 * not answered is asked for its versions first, and the records are sent again only when it answers.
 *
 * It also rejects a request as a whole when one partition refuses its records, so that nobody knows which ones are
 * stored. After the patch each message of a send is marked when it is (see `TrackedMessage`).
 */
export const patchProduce = once(() => {
  const require = createRequire(import.meta.url);
  tellRefused(require('kafkajs/src/protocol/requests/produce/index.js') as PatchedProtocol);
  const broker = require('kafkajs/src/broker/index.js') as { prototype: PatchedBroker };
  refuseLate(broker.prototype);
  askBeforeRepeating(broker.prototype);
  markStored(broker.prototype);
});

/** Replaces `produce` by one that sends nothing of a send that has ended. */
export function refuseLate(broker: PatchedBroker): void {
  const { produce } = broker;
  broker.produce = async function (this: PatchedBroker, request) {
    const send = sendOf(request);
    if (send && performance.now() >= send.endsAtMs) {
      throw Object.assign(new Error('the send has taken too long'), { retriable: false });
    }
    return produce.call(this, request);
  };
}

function sendOf({ topicData }: ProduceRequest): TrackedSend | undefined {
  return topicData[0]?.partitions[0]?.messages[0]?.send;
}

/**
 * Replaces `produce` by one that sends nothing to a broker that has not answered since its last time-out. kafkajs asks
 * for the leaders again after such an error, as after that of a broker that does not lead any more: without that it
 * would keep to a broker that hangs for five minutes, although its partitions have another leader after ten seconds.
 */
export function askBeforeRepeating(broker: PatchedBroker): void {
  const unanswered = new WeakSet<PatchedBroker>();
  const { produce } = broker;
  broker.produce = async function (this: PatchedBroker, request) {
    try {
      if (unanswered.has(this)) await this.apiVersions();
      unanswered.delete(this);
      return await produce.call(this, request);
    } catch (error) {
      if (!isTimeout(error)) throw error;
      unanswered.add(this);
      throw Object.assign(error, { type: 'NOT_LEADER_FOR_PARTITION' });
    }
  };
}

function isTimeout(error: unknown): error is Error {
  return error instanceof Error && error.name === 'KafkaJSRequestTimeoutError';
}

/** Replaces `produce` by one that marks the messages that the broker has stored, also those of a request that fails. */
export function markStored(broker: PatchedBroker): void {
  const { produce } = broker;
  broker.produce = function (this: PatchedBroker, request) {
    const response = produce.call(this, request);
    const marked = response.then(
      () => {
        mark(request, () => true);
      },
      (error: unknown) => {
        const refused = refusedIn(error);
        if (refused) mark(request, (topic, partition) => !refused.has(placeOf(topic, partition)));
      },
    );
    sendOf(request)?.requests.push(marked);
    return response;
  };
}

function mark(
  { topicData }: ProduceRequest,
  isStoredIn: (topic: string, partition: number) => boolean,
): void {
  for (const { topic, partitions } of topicData) {
    for (const { partition, messages } of partitions) {
      if (!isStoredIn(topic, partition)) continue;
      for (const message of messages) message.isStored = true;
    }
  }
}

/** Replaces the reading of responses by one whose errors name the partitions that refused their records. */
function tellRefused(produce: PatchedProtocol): void {
  const { protocol } = produce;
  produce.protocol = (of) => {
    const describe = protocol(of);
    return (options) => {
      const described = describe(options);
      const { parse } = described.response;
      const parseOrTell = async (response: ProduceResponse): Promise<unknown> => {
        try {
          return await parse(response);
        } catch (error) {
          // The same object: kafkajs decides by its fields what to do.
          throw Object.assign(error as Error, { refused: refusedBy(response) });
        }
      };
      return { ...described, response: { ...described.response, parse: parseOrTell } };
    };
  };
}

function refusedBy({ topics }: ProduceResponse): ReadonlySet<string> {
  return new Set(
    topics.flatMap(({ topicName, partitions }) =>
      partitions
        .filter(({ errorCode }) => errorCode !== 0)
        .map(({ partition }) => placeOf(topicName, partition)),
    ),
  );
}

/** Null when the broker did not say what it has stored. */
function refusedIn(error: unknown): ReadonlySet<string> | null {
  const isTold = error instanceof Error && 'refused' in error && error.refused instanceof Set;
  return isTold ? (error.refused as ReadonlySet<string>) : null;
}

function placeOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}

const MAX_RETRIES = 3;
/** A partition whose broker has died gets another leader after about 10 s. */
const RETRIED_FOR_MS = 40_000;

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
 * Returns true when the producer sends what is left again. After its last failure the caller, which logs it, repeats
 * the whole send: copies of what is stored. So a send that is stored in part has more time than another one.
 */
export function mayRetry(
  error: Error,
  { failures, isPartlyStored, elapsedMs }: FailedSend,
): boolean {
  if (!isRetriable(error) || elapsedMs >= RETRIED_FOR_MS) return false;
  return isPartlyStored || failures <= MAX_RETRIES;
}

/**
 * kafkajs, which is told not to retry, wraps what it would have retried. When it fails to look up the leaders after a
 * failure, it wraps that as an error that it would not retry, with the real one as its cause.
 */
function isRetriable({ name, cause }: Error): boolean {
  if (name === 'LeftOutError' || name === 'KafkaJSNumberOfRetriesExceeded') return true;
  return cause instanceof Error && 'retriable' in cause && cause.retriable === true;
}

/** What the messages of one send share. */
interface TrackedSend {
  /** No request begins from then on, by the monotonic clock: the caller has given the send up, and repeats it. */
  endsAtMs: number;
  /** One for each request with messages of this send. Each resolves when its messages are marked. */
  requests: Promise<void>[];
}

/** A message that learns what became of it: kafkajs hands the same object to its broker. */
interface TrackedMessage extends Message {
  topic: string;
  /** True when every in-sync replica has it. */
  isStored: boolean;
  send: TrackedSend;
}

/** The broker's errors for one record, and for the batch that kafkajs makes of the records of a request. */
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/** Returns true when a broker refused records for their size; sending them again cannot succeed. */
export function isRecordTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('type' in error && TOO_LARGE.has(String(error.type))) || isRecordTooLarge(error.cause);
}

/**
 * Returns the partition in which kafkajs puts a record with this key: murmur2 without the sign bit, as the Java
 * client does.
 */
export function partitionOf(key: string, partitions: number): number {
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
