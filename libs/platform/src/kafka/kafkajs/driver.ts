import { Partitioners, type Kafka, type Producer, type TopicMessages } from 'kafkajs';
import { byTopic } from '../by-topic.ts';
import type { KafkaDriver, RecordProducer } from '../kafka-driver.ts';
import { openKafkajsGroupClient } from './group-client.ts';
import type { OutgoingRecord } from '../record-log.ts';

/** Sends and reads records with kafkajs. `instanceId` names this process among the members of its groups. */
export function createKafkajsDriver(kafka: Kafka, instanceId: string): KafkaDriver {
  return {
    connectProducer: () => connectProducer(kafka),
    openGroupClient: (options, events) =>
      openKafkajsGroupClient(kafka, instanceId, options, events),
  };
}

async function connectProducer(kafka: Kafka): Promise<RecordProducer> {
  const producer = createProducer(kafka);
  await producer.connect();
  return {
    async send(records) {
      await producer.sendBatch({ acks: -1, topicMessages: byTopic(records, messagesOf) });
    },
    close: () => producer.disconnect(),
  };
}

/** Three retries inside kafkajs; the callers retry from there, and log it. */
function createProducer(kafka: Kafka): Producer {
  return kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 3 },
  });
}

function messagesOf(topic: string, records: readonly OutgoingRecord[]): TopicMessages {
  const messages = records.map(({ key, value, headers }) => ({
    key,
    value,
    ...(headers && { headers: { ...headers } }),
  }));
  return { topic, messages };
}
