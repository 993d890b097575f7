import { randomUUID } from 'node:crypto';
import { delayTopicsAmong, topicNames, type TopicNames } from '@posthorn/domain/topics.ts';
import type { RetrySchedule } from '@posthorn/domain/retry-schedule.ts';
import type { ServiceContext } from '../service.ts';
import {
  assertKafkaReachable,
  assertTopicsExist,
  createKafkaClient,
  listTopics,
} from './connect.ts';
import { createKafkaMetrics } from './kafka-metrics.ts';
import { createKafkaRecordLog } from './kafka-record-log.ts';
import type { RecordLog } from './record-log.ts';

interface KafkaConfig {
  KAFKA_BROKERS: string[];
  TOPIC_PREFIX: string;
  RETRY_DELAYS: RetrySchedule;
}

export interface OpenRecordLog {
  log: RecordLog;
  topics: TopicNames;
  /** Every delay topic that exists, those of an earlier schedule included. */
  delayTopics: ReadonlyMap<number, string>;
}

/** Opens the record log of a service and closes it at the stop. Throws StartupError, see connect.ts. */
export async function openRecordLog(
  clientId: string,
  { config, logger, lifecycle, registry }: ServiceContext<KafkaConfig>,
): Promise<OpenRecordLog> {
  const topics = topicNames(config.TOPIC_PREFIX, config.RETRY_DELAYS);
  const kafka = createKafkaClient(clientId, config.KAFKA_BROKERS, logger);
  await assertKafkaReachable(kafka, config.KAFKA_BROKERS);
  const existing = await listTopics(kafka);
  assertTopicsExist(topics, existing);
  const log = await createKafkaRecordLog({
    kafka,
    instanceId: randomUUID(),
    logger,
    metrics: createKafkaMetrics(registry),
    onFatal: (reason) => void lifecycle.shutDown(reason, 1),
  });
  lifecycle.onStop('kafka', log.close);
  return { log, topics, delayTopics: delayTopicsAmong(config.TOPIC_PREFIX, existing) };
}
