import { ProduceAcks, Producer, stringSerializer } from '@platformatic/kafka';
import type { RecordProducer } from '../kafka-driver.ts';
import { securityOf } from './connection-options.ts';
import type { DriverSettings } from './driver-settings.ts';
import { partitionHash } from './partition-hash.ts';
import { retryDelayMs } from './retry-delay.ts';

const REQUEST_TIMEOUT_MS = 10_000;

/** Connects a producer that waits for all in-sync replicas and sends each key to the partition that kafkajs gives it. */
export async function connectProducer({
  clientId,
  access,
}: DriverSettings): Promise<RecordProducer> {
  const producer = new Producer<string, Buffer, string, string>({
    clientId,
    bootstrapBrokers: access.brokers,
    ...securityOf(access),
    connectTimeout: 3_000,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // How long the broker waits for its in-sync replicas.
    timeout: REQUEST_TIMEOUT_MS,
    // The callers retry from there, and log it.
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
