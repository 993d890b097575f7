import { setTimeout as wait } from 'node:timers/promises';
import { Partitioners, type Kafka, type Producer } from 'kafkajs';
import { byTopic } from '../by-topic.ts';
import type { RecordProducer } from '../kafka-driver.ts';
import type { OutgoingRecord } from '../record-log.ts';
import { mayRetry } from './may-retry.ts';
import type { TrackedMessage } from './tracked-message.ts';

/** Resolves when a send that has failed this often is to be retried. */
type WaitForRetry = (failures: number) => Promise<void>;

/** Connects a producer that waits for all in-sync replicas. Between retries it waits 100 ms, 200 ms, … 1 s unless told otherwise. */
export async function connectProducer(
  kafka: Kafka,
  waitForRetry: WaitForRetry = (failures) => wait(Math.min(50 * 2 ** failures, 1_000)),
): Promise<RecordProducer> {
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

/** Retries with those records only that are not known to be stored. Rejects with the last error. */
async function sendUntilStored(
  producer: Producer,
  all: readonly TrackedMessage[],
  waitForRetry: WaitForRetry,
): Promise<void> {
  let left = all;
  let storedAtMs: number | null = null;
  for (let failures = 1; ; failures += 1) {
    try {
      await producer.sendBatch({ acks: -1, topicMessages: byTopic(left, toTopicMessages) });
      return;
    } catch (error) {
      await Promise.all(left[0]?.requests ?? []);
      left = left.filter(({ isStored }) => !isStored);
      if (left.length === 0) return;
      if (left.length < all.length) storedAtMs ??= performance.now();
      const partlyStoredForMs = storedAtMs === null ? null : performance.now() - storedAtMs;
      if (!mayRetry(error, { failures, partlyStoredForMs })) throw error;
      await waitForRetry(failures);
    }
  }
}

function track(records: readonly OutgoingRecord[]): TrackedMessage[] {
  const requests: Promise<void>[] = [];
  return records.map(({ topic, key, value, headers }) => ({
    topic,
    key,
    value,
    ...(headers && { headers: { ...headers } }),
    isStored: false,
    requests,
  }));
}

function toTopicMessages(
  topic: string,
  messages: TrackedMessage[],
): { topic: string; messages: TrackedMessage[] } {
  return { topic, messages };
}
