import type { DeferralDelays, RetrySchedule } from '@posthorn/domain/delivery/schedule.ts';
import {
  consumerGroups,
  type ConsumerGroups,
  type DelayTopic,
  delayTopicsAmong,
  MAX_SEND_BYTES,
  topicNames,
  type TopicNames,
  topicSpecs,
  topicSpecsAmong,
} from '@posthorn/domain/records/topics.ts';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { withTimeout } from '../async/pause.ts';
import type { ServiceContext } from '../service/run-service.ts';
import type { KeyRing } from '../security/vault.ts';
import {
  assertCoPartitioned,
  assertKafkaReachable,
  assertTopicsExist,
  createKafkaClient,
  type KafkaAccessConfig,
  kafkaAccessOf,
  readTopics,
} from './connect.ts';
import { type BrokerClocks, createBrokerClocks } from './broker-clocks.ts';
import { consume } from './consumer/consume.ts';
import type { ConsumerDeps } from './consumer/group-consumer.ts';
import { createProcessShare } from './consumer/partition-assignment.ts';
import { createKafkaMetrics, type KafkaMetrics } from './kafka-metrics.ts';
import { connectProducer, partitionOf } from './producer.ts';
import {
  bytesOfStored,
  type CopiedRecord,
  type OutgoingRecord,
  type RecordLog,
} from './record-log.ts';
import { createRecordMac, type RecordMac, signRecords } from './record-mac.ts';
import { checkTopics, createTopicWatch, observeTopics } from './topics.ts';

interface KafkaConfig extends KafkaAccessConfig {
  ENCRYPTION_KEYS: KeyRing;
  TOPIC_PREFIX: string;
  RETRY_DELAYS: RetrySchedule;
  DEFERRAL_DELAYS: DeferralDelays;
}

export interface OpenRecordLog {
  /** Signs every record that it publishes. */
  records: RecordLog;
  publishCopies: KafkaRecordLog['publishCopies'];
  metrics: KafkaMetrics;
  mac: RecordMac;
  topics: TopicNames;
  groups: ConsumerGroups;
  /** Every delay topic that exists, by name, including those of earlier settings. */
  delayTopics: ReadonlyMap<string, DelayTopic>;
  /** Returns how many partitions these topics have together; a missing topic has none. */
  countPartitions: (names: readonly string[]) => number;
  /** Returns the partition of a key in an existing topic. */
  partitionOf: (topic: string, key: string) => number;
  brokerClocks: BrokerClocks;
  /** The client for requests to Kafka beside its records. */
  kafka: Kafka;
  /** False when a delay topic of earlier settings was deleted: its reader must be restarted. */
  isAlive: () => boolean;
}

/**
 * Opens the record log of a service and closes it at the stop. `nowMs` is the time of the database. Throws StartupError as
 * connect.ts says.
 */
export async function openRecordLog(
  clientId: string,
  { config, logger, lifecycle, registry }: ServiceContext<KafkaConfig>,
  nowMs: () => number,
): Promise<OpenRecordLog> {
  const { TOPIC_PREFIX: prefix, RETRY_DELAYS, DEFERRAL_DELAYS } = config;
  const topics = topicNames(prefix, RETRY_DELAYS, DEFERRAL_DELAYS);
  const required = topicSpecs(topics).map(({ name }) => name);
  const access = kafkaAccessOf(config);
  const kafka = createKafkaClient(clientId, access, logger);
  await assertKafkaReachable(kafka, access.brokers);
  const found = await observeTopics(kafka, (names) => topicSpecsAmong(prefix, topics, names));
  const { existing } = found;
  assertTopicsExist(topics, existing);
  assertCoPartitioned(topics, existing);
  checkTopics(found, { registry, logger });
  const metrics = createKafkaMetrics(registry, nowMs);
  metrics.startAtZero('produced', required);
  const log = await createKafkaRecordLog({
    kafka,
    instanceId: randomUUID(),
    logger,
    metrics,
    nowMs,
    onFatal: (reason) => void lifecycle.shutDown(reason, 1),
  });
  lifecycle.onStop('kafka', log.close);
  const mac = createRecordMac(config.ENCRYPTION_KEYS);
  const delayTopics = delayTopicsAmong(prefix, existing.keys());
  const optional = [...delayTopics.keys()].filter((name) => !required.includes(name));
  const watched = { required, optional, readTopics: () => readTopics(kafka) };
  const topicWatch = createTopicWatch({ ...watched, registry, logger });
  topicWatch.start();
  lifecycle.onStop('topic watch', topicWatch.stop);
  return {
    records: signRecords(log, mac),
    publishCopies: log.publishCopies,
    metrics,
    mac,
    topics,
    groups: consumerGroups(prefix, topics, delayTopics),
    delayTopics,
    countPartitions: (names) => names.reduce((sum, name) => sum + (existing.get(name) ?? 0), 0),
    partitionOf: (topic, key) => partitionOf(key, existing.get(topic) ?? 1),
    brokerClocks: log.brokerClocks,
    kafka,
    isAlive: topicWatch.isAlive,
  };
}

interface RecordLogDeps extends Omit<ConsumerDeps, 'share'> {
  /** Names this process; the members of a group are ordered by it. */
  instanceId: string;
}

/** The producer ends a send before this: four requests of ten seconds and the waits between them. */
const SEND_TIMEOUT_MS = 60_000;
/** Everything was sent and acknowledged, or will be published again by another process. */
const CLOSE_TIMEOUT_MS = 5_000;

export interface KafkaRecordLog extends RecordLog {
  /** Publishes copies, which get no MAC. */
  publishCopies: (records: readonly CopiedRecord[]) => Promise<void>;
  brokerClocks: BrokerClocks;
}

/** The record log on Kafka: acknowledged by all in-sync replicas, partitioned by key (murmur2). */
export async function createKafkaRecordLog(deps: RecordLogDeps): Promise<KafkaRecordLog> {
  const share = createProcessShare(deps.instanceId);
  const brokerClocks = createBrokerClocks();
  const producer = await connectProducer(deps.kafka, { onReplies: brokerClocks.note });
  const { operations } = deps.metrics;
  let isConnected = true;

  async function publish<Sent extends OutgoingRecord | CopiedRecord>(
    records: readonly Sent[],
    bytesOf: (record: Sent) => number,
  ): Promise<void> {
    for (const part of cutToSends(records, bytesOf)) {
      const startedMs = performance.now();
      await withTimeout(producer.send(part), SEND_TIMEOUT_MS).catch((error: unknown) => {
        isConnected = false;
        operations.failed('produce', performance.now() - startedMs);
        throw error;
      });
      operations.succeeded('produce', performance.now() - startedMs);
      isConnected = true;
      for (const [topic, { length }] of Map.groupBy(part, ({ topic }) => topic)) {
        deps.metrics.produced.inc({ topic }, length);
      }
    }
  }

  return {
    publish: (records) => publish(records, bytesOfOwn),
    publishCopies: (records) => publish(records, bytesOfStored),
    consume: (options) => consume({ ...deps, share }, options),
    async close() {
      isConnected = false;
      await withTimeout(producer.close(), CLOSE_TIMEOUT_MS);
    },
    isConnected: () => isConnected,
    brokerClocks,
  };
}

/** Room for the lengths, the timestamp and the headers of a record. */
const OVERHEAD_BYTES = 512;

/** Their headers are few and short. */
const bytesOfOwn = ({ key, value }: OutgoingRecord): number => key.length + value.length;

/**
 * Splits records into requests that a broker accepts, in order: the producer sends one batch for each partition in a
 * request, and topics allow batches of twice MAX_SEND_BYTES. A record is never split.
 */
function cutToSends<Sent>(records: readonly Sent[], bytesOf: (record: Sent) => number): Sent[][] {
  const sends: Sent[][] = [];
  let bytes = Infinity;
  for (const record of records) {
    const ofRecord = bytesOf(record) + OVERHEAD_BYTES;
    bytes += ofRecord;
    if (bytes > MAX_SEND_BYTES) {
      sends.push([]);
      bytes = ofRecord;
    }
    sends.at(-1)?.push(record);
  }
  return sends;
}
