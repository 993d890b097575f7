import { topicNames, type TopicNames } from '@posthorn/domain/topics.ts';
import type { RetrySchedule } from '@posthorn/domain/retry-schedule.ts';
import type { ServiceContext } from '../service.ts';
import { assertKafkaReachable, assertTopicsExist, createKafkaClient } from './connect.ts';
import { createKafkaMetrics } from './kafka-metrics.ts';
import { createKafkaRecordLog } from './kafka-record-log.ts';
import type { RecordLog } from './record-log.ts';

interface KafkaConfig {
  KAFKA_BROKERS: string[];
  TOPIC_PREFIX: string;
  RETRY_DELAYS: RetrySchedule;
}

/** Opens the record log of a service and closes it at the stop. Throws StartupError, see connect.ts. */
export async function openRecordLog(
  clientId: string,
  { config, logger, lifecycle, registry }: ServiceContext<KafkaConfig>,
): Promise<{ log: RecordLog; topics: TopicNames }> {
  const topics = topicNames(config.TOPIC_PREFIX, config.RETRY_DELAYS);
  const kafka = createKafkaClient(clientId, config.KAFKA_BROKERS, logger);
  await assertKafkaReachable(kafka, config.KAFKA_BROKERS);
  await assertTopicsExist(kafka, topics);
  const log = await createKafkaRecordLog({
    kafka,
    logger,
    metrics: createKafkaMetrics(registry),
    onFatal: (reason) => void lifecycle.shutDown(reason, 1),
  });
  lifecycle.onStop('kafka', log.close);
  return { log, topics };
}
