import { randomUUID } from 'node:crypto';
import type { RetrySchedule } from '@posthorn/domain/schedule/retry-schedule.ts';
import { topicNames, type TopicNames } from '@posthorn/domain/records/topics.ts';
import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { createKafkaClient } from '@posthorn/platform/kafka/connection/connect.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import { createRecordMac } from '@posthorn/platform/kafka/publishing/record-mac.ts';
import { signRecords } from '@posthorn/platform/kafka/publishing/sign-records.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createRegistry } from '@posthorn/platform/service/metrics.ts';
import { connectMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import {
  createMessageStore,
  type MessageStore,
} from '@posthorn/platform/mongo/messages/messages.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import type { Kafka } from 'kafkajs';
import { z } from 'zod';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import { encryptionEnv } from '../../tools/local-stack/supervisor/encryption.ts';

/** The stores of the stack, for load that is not sent through the API. */
export interface OpenStores {
  kafka: Kafka;
  records: Pick<RecordLog, 'publish'>;
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
    metrics: createKafkaMetrics(createRegistry(NAME)),
    onFatal: () => undefined,
  });
  const mongo = await connectMongo(mongodbUrl, NAME);
  return {
    kafka,
    // Services make dead letters of records that nobody signed.
    records: signRecords(log, createRecordMac(config.ENCRYPTION_KEYS)),
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
