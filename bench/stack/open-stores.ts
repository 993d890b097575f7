import { randomUUID } from 'node:crypto';
import type { RetrySchedule } from '@posthorn/domain/delivery/schedule.ts';
import { topicNames, type TopicNames } from '@posthorn/domain/records/topics.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import { createRecordMac, signRecords } from '@posthorn/platform/kafka/record-mac.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createRegistry } from '@posthorn/platform/service/metrics.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/messages/deliveries.ts';
import {
  createMessageStore,
  type MessageStore,
} from '@posthorn/platform/mongo/messages/messages.ts';
import { createVault, type Vault } from '@posthorn/platform/security/vault.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Kafka, KafkaMessage } from 'kafkajs';
import { z } from 'zod';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import { encryptionEnv } from '../../tools/local-stack/supervisor/services.ts';

/** The stores of the stack, for load that is not sent through the API. */
export interface OpenStores {
  kafka: Kafka;
  records: Pick<RecordLog, 'publish'>;
  mongo: MongoConnection;
  /** With the encryption keys of the services. */
  vault: Vault;
  deliveries: DeliveryStore;
  messages: MessageStore;
  topics: TopicNames;
  schedule: RetrySchedule;
  /** The prefix of the consumer groups of the services. */
  groupPrefix: string;
  close: () => Promise<void>;
}

const NAME = 'posthorn-bench';

/** Opens the stores with the settings and the code of the services. */
export async function openStores({ kafkaBrokers, mongodbUrl }: Addresses): Promise<OpenStores> {
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
    vault: createVault(config.ENCRYPTION_KEYS),
    deliveries: createDeliveryStore(mongo.db),
    messages: createMessageStore(mongo.db),
    topics: topicNames(config.TOPIC_PREFIX, config.RETRY_DELAYS, config.DEFERRAL_DELAYS),
    schedule: config.RETRY_DELAYS,
    groupPrefix: config.TOPIC_PREFIX,
    async close() {
      await Promise.all([log.close(), mongo.close()]);
    },
  };
}

interface Followed {
  message: KafkaMessage;
  /** When its batch was received, in milliseconds since 1970. */
  receivedAtMs: number;
}

export interface Follower {
  close: () => Promise<void>;
}

/**
 * Reads a topic in a consumer group of its own that commits nothing. Resolves when it has its partitions.
 * For a topic that is still empty. A record costs the generator some microseconds: there is no promise for each.
 */
export async function followTopic(
  kafka: Kafka,
  topic: string,
  onRecord: (followed: Followed) => void,
): Promise<Follower> {
  const consumer = kafka.consumer({
    groupId: `bench-${randomUUID()}`,
    minBytes: 1,
    maxWaitTimeInMs: 100,
  });
  const hasJoined = new Promise<void>((resolve) => {
    consumer.on(consumer.events.GROUP_JOIN, () => {
      resolve();
    });
  });
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

/**
 * Deletes all present records of a topic, as its retention would do later. Consumers continue after
 * them.
 */
export async function deleteRecords(kafka: Kafka, topic: string): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const offsets = await admin.fetchTopicOffsets(topic);
    // -1 means the end of the partition.
    const partitions = offsets.map(({ partition }) => ({ partition, offset: '-1' }));
    await admin.deleteTopicRecords({ topic, partitions });
  } finally {
    await admin.disconnect();
  }
}
