import { randomUUID } from 'node:crypto';
import {
  consumerGroups,
  type ConsumerGroups,
  type DelayTopic,
  delayTopicsAmong,
  topicNames,
  type TopicNames,
  topicSpecs,
  topicSpecsAmong,
} from '@posthorn/domain/records/topics.ts';
import type { DeferralDelays, RetrySchedule } from '@posthorn/domain/delivery/schedule.ts';
import type { Kafka } from 'kafkajs';
import type { ServiceContext } from '../service/run-service.ts';
import type { KeyRing } from '../vault/vault.ts';
import {
  assertCoPartitioned,
  assertKafkaReachable,
  assertTopicsExist,
  createKafkaClient,
  readTopics,
} from './connection/connect.ts';
import { kafkaAccessOf, type KafkaAccessConfig } from './connection/access.ts';
import { createKafkaMetrics } from './kafka-metrics.ts';
import { createKafkaRecordLog } from './kafka-record-log.ts';
import { signRecords } from './publishing/sign-records.ts';
import { partitionOf } from './publishing/partition-of.ts';
import { createRecordMac, type RecordMac } from './publishing/record-mac.ts';
import type { RecordLog } from './record-log.ts';
import { checkTopics } from './topics/check-topics.ts';
import { observeTopics } from './topics/observe-topics.ts';
import { createTopicWatch, type TopicWatch } from './topics/watch-topics.ts';

interface KafkaConfig extends KafkaAccessConfig {
  ENCRYPTION_KEYS: KeyRing;
  TOPIC_PREFIX: string;
  RETRY_DELAYS: RetrySchedule;
  DEFERRAL_DELAYS: DeferralDelays;
}

export interface OpenRecordLog {
  /** Signs what it publishes. */
  records: RecordLog;
  mac: RecordMac;
  topics: TopicNames;
  groups: ConsumerGroups;
  /** Every delay topic that exists, by name, including those of earlier settings. */
  delayTopics: ReadonlyMap<string, DelayTopic>;
  /** How many partitions these topics have together; none for one that does not exist. */
  countPartitions: (names: readonly string[]) => number;
  /** Returns the partition of a key in an existing topic. */
  partitionOf: (topic: string, key: string) => number;
  /** For what is asked of Kafka beside its records. */
  kafka: Kafka;
  /** False when a delay topic of earlier settings was deleted: its reader must be restarted. */
  isAlive: () => boolean;
}

type Context = ServiceContext<KafkaConfig>;

/** Opens the record log of a service and closes it at the stop. Throws StartupError as connect.ts says. */
export async function openRecordLog(clientId: string, context: Context): Promise<OpenRecordLog> {
  const { config, logger, lifecycle, registry } = context;
  const topics = topicNames(config.TOPIC_PREFIX, config.RETRY_DELAYS, config.DEFERRAL_DELAYS);
  const access = kafkaAccessOf(config);
  const kafka = createKafkaClient(clientId, access, logger);
  await assertKafkaReachable(kafka, access.brokers);
  const found = await observeTopics(kafka, (names) =>
    topicSpecsAmong(config.TOPIC_PREFIX, topics, names),
  );
  const { existing } = found;
  assertTopicsExist(topics, existing);
  assertCoPartitioned(topics, existing);
  checkTopics(found, { registry, logger });
  const metrics = createKafkaMetrics(registry);
  metrics.startAtZero(
    'produced',
    topicSpecs(topics).map(({ name }) => name),
  );
  const log = await createKafkaRecordLog({
    kafka,
    instanceId: randomUUID(),
    logger,
    metrics,
    onFatal: (reason) => void lifecycle.shutDown(reason, 1),
  });
  lifecycle.onStop('kafka', log.close);
  const mac = createRecordMac(config.ENCRYPTION_KEYS);
  const delayTopics = delayTopicsAmong(config.TOPIC_PREFIX, existing.keys());
  const { isAlive } = watchTopics(context, { kafka, topics, delayTopics });
  const countPartitions = (names: readonly string[]): number =>
    names.reduce((sum, name) => sum + (existing.get(name) ?? 0), 0);
  const groups = consumerGroups(config.TOPIC_PREFIX, topics, delayTopics);
  const signed = signRecords(log, mac);
  return {
    records: signed,
    mac,
    topics,
    groups,
    delayTopics,
    countPartitions,
    partitionOf: (topic, key) => partitionOf(key, existing.get(topic) ?? 1),
    kafka,
    isAlive,
  };
}

function watchTopics(
  { logger, registry, lifecycle }: Context,
  { kafka, topics, delayTopics }: Pick<OpenRecordLog, 'topics' | 'delayTopics'> & { kafka: Kafka },
): TopicWatch {
  const required = topicSpecs(topics).map(({ name }) => name);
  const watch = createTopicWatch({
    required,
    optional: [...delayTopics.keys()].filter((name) => !required.includes(name)),
    readTopics: () => readTopics(kafka),
    registry,
    logger,
  });
  watch.start();
  lifecycle.onStop('topic watch', watch.stop);
  return watch;
}
