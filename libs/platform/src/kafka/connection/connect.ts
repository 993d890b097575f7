import { Kafka, logLevel, type Admin, type logCreator, type SASLOptions } from 'kafkajs';
import {
  coPartitionedTopics,
  topicSpecs,
  type TopicNames,
} from '@posthorn/domain/records/topics.ts';
import { withTimeout } from '../../async/pause.ts';
import { messageOf, StartupError } from '../../service/errors.ts';
import type { Logger } from '../../service/logger.ts';
import type { KafkaAccess, Sasl } from './access.ts';
import { patchConsumerGroup } from '../kafkajs/patch-consumer-group.ts';
import { patchRequestQueue } from '../kafkajs/patch-request-queue.ts';

const START_TIMEOUT_MS = 10_000;
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 };

/** Creates the client; does not connect. `retry` is explicit because kafkajs has other defaults in tests. */
export function createKafkaClient(
  clientId: string,
  { brokers, tls = null, sasl = null }: Pick<KafkaAccess, 'brokers'> & Partial<KafkaAccess>,
  logger: Logger,
): Kafka {
  patchRequestQueue();
  patchConsumerGroup();
  return new Kafka({
    clientId,
    brokers,
    ...(tls && { ssl: { secureContext: tls } }),
    ...(sasl && { sasl: toKafkajs(sasl) }),
    connectionTimeout: 3_000,
    requestTimeout: 10_000,
    retry: RETRY,
    logLevel: logLevel.WARN,
    logCreator: toPino(logger.child({ part: 'kafka' })),
  });
}

function toKafkajs(sasl: Sasl): SASLOptions {
  if (sasl.mechanism !== 'oauthbearer') return sasl;
  const { mechanism, readToken } = sasl;
  return { mechanism, oauthBearerProvider: async () => ({ value: await readToken() }) };
}

/**
 * Asks a broker for the cluster once. Throws StartupError within about 10 seconds when none answers:
 * at a start a wrong address is far more likely than an outage, and a supervisor restarts the process.
 */
export async function assertKafkaReachable(kafka: Kafka, brokers: string[]): Promise<void> {
  const admin = kafka.admin({ retry: { ...RETRY, retries: 3 } });
  try {
    const connected = admin.connect().then(() => admin.describeCluster());
    await withTimeout(connected, START_TIMEOUT_MS);
  } catch (error) {
    throw new StartupError(
      `Kafka cannot be used at ${brokers.join(', ')}: ${messageOf(error)}. Start it, or correct KAFKA_BROKERS, KAFKA_SSL_* and KAFKA_SASL_*.`,
    );
  } finally {
    await closeAdmin(admin);
  }
}

/** Topic → its number of partitions. */
export type ExistingTopics = ReadonlyMap<string, number>;

/** Rejects when Kafka does not answer within 10 seconds. */
export async function readTopics(kafka: Kafka): Promise<ExistingTopics> {
  const admin = kafka.admin();
  try {
    const metadata = admin.connect().then(() => admin.fetchTopicMetadata());
    const { topics } = await withTimeout(metadata, START_TIMEOUT_MS);
    return new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
  } finally {
    await closeAdmin(admin);
  }
}

/** Throws StartupError when a topic is missing: topics are created by a command, never by use. */
export function assertTopicsExist(names: TopicNames, existing: ExistingTopics): void {
  const missing = topicSpecs(names)
    .map(({ name }) => name)
    .filter((name) => !existing.has(name));
  if (missing.length === 0) return;
  throw new StartupError(
    `Kafka has no topic ${missing.join(', ')}. Run deploy/setup/create-topics.ts with the same TOPIC_PREFIX, RETRY_DELAYS and DEFERRAL_DELAYS.`,
  );
}

/**
 * Throws StartupError when partition p of one topic could belong to another process than partition p
 * of another one: two processes would serve one endpoint, each with limits of its own.
 */
export function assertCoPartitioned(names: TopicNames, existing: ExistingTopics): void {
  const counts = coPartitionedTopics(names).map((name) => ({
    name,
    count: existing.get(name) ?? 0,
  }));
  if (new Set(counts.map(({ count }) => count)).size <= 1) return;
  const found = counts.map(({ name, count }) => `${name} has ${count}`).join(', ');
  throw new StartupError(
    `These topics must have the same number of partitions: ${found}. Run deploy/setup/add-partitions.ts as docs/partitions.md says.`,
  );
}

/** Nothing is lost with the connection of an admin client, so nobody waits longer for its end. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Closes the connection, or leaves it behind when Kafka does not answer. Never rejects. */
export async function closeAdmin(admin: Pick<Admin, 'disconnect'>): Promise<void> {
  await withTimeout(admin.disconnect(), CLOSE_TIMEOUT_MS).catch(() => undefined);
}

/** kafkajs logs failures that it retries as ERROR. Nobody has to act on them, so they are warnings here. */
function toPino(logger: Logger): logCreator {
  return () => (entry) => {
    const { message, groupId, error, retryCount } = entry.log as Record<string, unknown>;
    const level = entry.level === logLevel.ERROR ? 'warn' : 'info';
    logger[level](
      { namespace: entry.namespace, groupId, retryCount, error: textOf(error) },
      message as string,
    );
  };
}

function textOf(error: unknown): string | undefined {
  return error === undefined ? undefined : messageOf(error);
}
