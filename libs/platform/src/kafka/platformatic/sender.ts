import { ProduceAcks, Producer, stringSerializer } from '@platformatic/kafka';
import type { RecordSender } from '../consumer/group-client.ts';
import type { CarrierSettings } from './carrier-settings.ts';
import { partitionHash } from './partition-hash.ts';
import { retryDelayMs } from './retry-delay.ts';

const REQUEST_TIMEOUT_MS = 10_000;

/** Sends with acknowledgement of all in-sync replicas, each key to the partition that kafkajs gives it. */
export async function connectSender({ clientId, brokers }: CarrierSettings): Promise<RecordSender> {
  const producer = new Producer<string, Buffer, string, string>({
    clientId,
    bootstrapBrokers: brokers,
    connectTimeout: 3_000,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // How long the broker waits for its in-sync replicas.
    timeout: REQUEST_TIMEOUT_MS,
    // The callers' own loops go on from there and see each failure.
    retries: 3,
    retryDelay: retryDelayMs,
    autocreateTopics: false,
    partitioner: (_message, key) => partitionHash(key),
    serializers: {
      key: stringSerializer,
      headerKey: stringSerializer,
      headerValue: stringSerializer,
    },
  });
  await producer.metadata({ topics: [] });
  return {
    async send(records) {
      await producer.send({
        acks: ProduceAcks.ALL,
        messages: records.map(({ topic, key, value, headers = {} }) => ({
          topic,
          key,
          value,
          headers,
        })),
      });
    },
    close: () => producer.close(),
  };
}
