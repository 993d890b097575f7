import { Partitioners, type Kafka, type Producer, type TopicMessages } from 'kafkajs';
import { consume, type ConsumeDeps } from './consume.ts';
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
      if (records.length === 0) return;
      await producer
        .sendBatch({ acks: -1, topicMessages: byTopic(records) })
        .catch((error: unknown) => {
          isConnected = false;
          throw error;
        });
      isConnected = true;
      for (const { topic } of records) deps.metrics.produced.inc({ topic });
    },
    consume: (options) => consume(deps, options),
    close: () => producer.disconnect(),
    isConnected: () => isConnected,
  };
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
