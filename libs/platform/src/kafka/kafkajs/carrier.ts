import { Partitioners, type Kafka, type Producer, type TopicMessages } from 'kafkajs';
import type { RecordCarrier, RecordSender } from '../consumer/group-client.ts';
import { openKafkajsGroupClient } from './group-client.ts';
import type { OutgoingRecord } from '../record-log.ts';

/** Carries records with kafkajs. `instanceId` names this process among the members of its groups. */
export function createKafkajsCarrier(kafka: Kafka, instanceId: string): RecordCarrier {
  return {
    connectSender: () => connectSender(kafka),
    openGroupClient: (options, events) =>
      openKafkajsGroupClient(kafka, instanceId, options, events),
  };
}

async function connectSender(kafka: Kafka): Promise<RecordSender> {
  const producer = createProducer(kafka);
  await producer.connect();
  return {
    async send(records) {
      await producer.sendBatch({ acks: -1, topicMessages: byTopic(records) });
    },
    close: () => producer.disconnect(),
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
