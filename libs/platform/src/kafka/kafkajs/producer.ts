import { setTimeout as wait } from 'node:timers/promises';
import { Partitioners, type Kafka, type Producer } from 'kafkajs';
import { byTopic } from '../by-topic.ts';
import type { OutgoingRecord } from '../record-log.ts';
import { LeftOutError, mayRetry } from './may-retry.ts';
import { patchProduce } from './patch-produce.ts';
import type { TrackedMessage, TrackedSend } from './tracked-message.ts';

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
