import { Partitioners, type Kafka, type Producer, type TopicMessages } from 'kafkajs';
import { consume } from './consume.ts';
import type { ConsumeDeps } from './join-group.ts';
import type { OutgoingRecord, RecordLog } from './record-log.ts';

/** The record log on Kafka: acknowledged by all in-sync replicas, partitioned by key (murmur2). */
export async function createKafkaRecordLog(deps: ConsumeDeps): Promise<RecordLog> {
  const producer = createProducer(deps.kafka);
  let isConnected = false;
  producer.on(producer.events.CONNECT, () => (isConnected = true));
  producer.on(producer.events.DISCONNECT, () => (isConnected = false));
  await producer.connect();
  return {
    async publish(records) {
      for (const part of inSends(records)) {
        await producer
          .sendBatch({ acks: -1, topicMessages: byTopic(part) })
          .catch((error: unknown) => {
            isConnected = false;
            throw error;
          });
        isConnected = true;
        for (const { topic } of part) deps.metrics.produced.inc({ topic });
      }
    },
    consume: (options) => consume(deps, options),
    close: () => producer.disconnect(),
    isConnected: () => isConnected,
  };
}

/** Brokers refuse record batches over 1 MiB, and kafkajs makes one batch per partition and request. */
const MAX_SEND_BYTES = 524_288;
/** Room for what surrounds a record: lengths, timestamps, headers. */
const OVERHEAD_BYTES = 512;

/** Cuts what is to be sent into requests that a broker takes, in order; a record is never cut. */
export function inSends(records: readonly OutgoingRecord[]): OutgoingRecord[][] {
  const sends: OutgoingRecord[][] = [];
  let bytes = Infinity;
  for (const record of records) {
    bytes += record.value.length + record.key.length + OVERHEAD_BYTES;
    if (bytes > MAX_SEND_BYTES) {
      sends.push([]);
      bytes = record.value.length + record.key.length + OVERHEAD_BYTES;
    }
    sends.at(-1)?.push(record);
  }
  return sends;
}

/** Three tries inside kafkajs; the callers' own loops go on from there and see each failure. */
function createProducer(kafka: Kafka): Producer {
  return kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 3 },
  });
}

function byTopic(records: readonly OutgoingRecord[]): TopicMessages[] {
  const grouped = new Map<string, TopicMessages>();
  for (const { topic, key, value, headers } of records) {
    const ofTopic = grouped.get(topic) ?? { topic, messages: [] };
    ofTopic.messages.push({ key, value, ...(headers && { headers: { ...headers } }) });
    grouped.set(topic, ofTopic);
  }
  return [...grouped.values()];
}
