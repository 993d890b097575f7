import { randomUUID } from 'node:crypto';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { createKafkaClient, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import { createRecordMac, signRecords } from '@posthorn/platform/kafka/record-mac.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createRegistry } from '@posthorn/platform/service/metrics.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createVault } from '@posthorn/platform/security/vault.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Kafka, KafkaMessage } from 'kafkajs';
import { z } from 'zod';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import { encryptionEnv } from '../../tools/local-stack/supervisor/services.ts';

/** The stores of the stack, for load that is not sent through the API. */
export type OpenStores = Awaited<ReturnType<typeof openStores>>;

const NAME = 'posthorn-bench';

/** Opens the stores with the settings and the code of the services. */
export async function openStores({ kafkaBrokers, mongodbUrl }: Addresses) {
  const env = { ...process.env, ...encryptionEnv(process.env), KAFKA_BROKERS: kafkaBrokers };
  const schema = z.object({ ...settings.kafka, ...settings.encryption });
  const config = parseConfig('bench', schema, env);
  const logger = createLogger(NAME, 'silent');
  const kafka = createKafkaClient(NAME, { brokers: config.KAFKA_BROKERS }, logger);
  const log = await createKafkaRecordLog({
    kafka,
    logger,
    instanceId: randomUUID(),
    metrics: createKafkaMetrics(createRegistry(NAME), Date.now),
    nowMs: Date.now,
    onFatal: () => undefined,
  });
  const mongo = await connectMongo(mongodbUrl, NAME);
  return {
    kafka,
    // Services make dead letters of records that nobody signed.
    records: signRecords(log, createRecordMac(config.ENCRYPTION_KEYS)),
    mongo,
    /** With the encryption keys of the services. */
    vault: createVault(config.ENCRYPTION_KEYS),
    deliveries: createDeliveryStore(mongo.db),
    messages: createMessageStore(mongo.db),
    topics: topicNames(config.TOPIC_PREFIX, config.RETRY_DELAYS, config.DEFERRAL_DELAYS),
    schedule: config.RETRY_DELAYS,
    /** The prefix of the consumer groups of the services. */
    groupPrefix: config.TOPIC_PREFIX,
    async close(): Promise<void> {
      await Promise.all([log.close(), mongo.close()]);
    },
  };
}

interface Followed {
  message: KafkaMessage;
  /** When its batch was received, in milliseconds since 1970. */
  receivedAtMs: number;
}

/**
 * Reads a topic in a consumer group of its own that commits nothing. Resolves when it has its partitions.
 * For a topic that is still empty. A record costs the generator some microseconds: there is no promise for each.
 */
export async function followTopic(
  kafka: Kafka,
  topic: string,
  onRecord: (followed: Followed) => void,
) {
  const groupId = `bench-${randomUUID()}`;
  const consumer = kafka.consumer({ groupId, minBytes: 1, maxWaitTimeInMs: 100 });
  const { promise: hasJoined, resolve } = Promise.withResolvers<unknown>();
  consumer.on(consumer.events.GROUP_JOIN, resolve);
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }) => {
      const receivedAtMs = Date.now();
      for (const message of batch.messages) onRecord({ message, receivedAtMs });
      return Promise.resolve();
    },
  });
  await hasJoined;
  return { close: () => consumer.disconnect() };
}

/** Deletes all present records of a topic, as its retention would do later. Consumers continue after them. */
export async function deleteRecords(kafka: Kafka, topic: string): Promise<void> {
  await withAdmin(kafka, {}, async (admin) => {
    const offsets = await admin.fetchTopicOffsets(topic);
    // -1 means the end of the partition.
    const partitions = offsets.map(({ partition }) => ({ partition, offset: '-1' }));
    await admin.deleteTopicRecords({ topic, partitions });
  });
}
