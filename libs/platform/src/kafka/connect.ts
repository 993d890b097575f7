import {
  coPartitionedTopics,
  type TopicNames,
  topicSpecs,
} from '@posthorn/domain/records/topics.ts';
import { type Admin, Kafka, type logCreator, logLevel, type SASLOptions } from 'kafkajs';
import { readFile } from 'node:fs/promises';
import type { SecureContext } from 'node:tls';
import type { z } from 'zod';
import { withTimeout } from '../async/pause.ts';
import { messageOf, StartupError } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { followTlsFiles } from '../service/secure-context.ts';
import type { kafkaAccess } from '../service/store-settings.ts';
import { topicIdOf } from './patches/metadata.ts';
import { patchKafkajs } from './patches/patch-kafkajs.ts';

const START_TIMEOUT_MS = 10_000;
/** Nothing is lost with the connection of an admin client, so nobody waits longer for its end. */
const CLOSE_TIMEOUT_MS = 2_000;
/** Explicit, because kafkajs has other defaults in tests. */
export const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 };

/** Creates the client; does not connect. */
export function createKafkaClient(
  clientId: string,
  { brokers, tls = null, sasl = null }: Pick<KafkaAccess, 'brokers'> & Partial<KafkaAccess>,
  logger: Logger,
): Kafka {
  patchKafkajs();
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

interface AdminOptions {
  /** Without it the step may take any time. */
  timeoutMs?: number;
  retries?: number;
}

/**
 * Runs the step with a connected admin client. Rejects with TimeoutError after `timeoutMs`, and leaves the connection
 * behind when Kafka does not answer.
 */
export async function withAdmin<T>(
  kafka: Kafka,
  { timeoutMs, retries = RETRY.retries }: AdminOptions,
  step: (admin: Admin) => Promise<T>,
): Promise<T> {
  const admin = kafka.admin({ retry: { ...RETRY, retries } });
  try {
    const result = admin.connect().then(() => step(admin));
    return await (timeoutMs === undefined ? result : withTimeout(result, timeoutMs));
  } finally {
    await withTimeout(admin.disconnect(), CLOSE_TIMEOUT_MS).catch(() => undefined);
  }
}

/**
 * Requests the description of the cluster once. Throws StartupError within about 10 seconds when none answers:
 * at a start a wrong address is far more likely than an outage, and a supervisor restarts the process.
 */
export async function assertKafkaReachable(kafka: Kafka, brokers: string[]): Promise<void> {
  try {
    const options = { timeoutMs: START_TIMEOUT_MS, retries: 3 };
    await withAdmin(kafka, options, (admin) => admin.describeCluster());
  } catch (error) {
    throw new StartupError(
      `Kafka cannot be used at ${brokers.join(', ')}: ${messageOf(error)}. Start it, or correct KAFKA_BROKERS, KAFKA_SSL_* and KAFKA_SASL_*.`,
    );
  }
}

interface TopicDescription {
  partitions: number;
  /** A topic that is deleted and made again gets another one. Empty before Kafka 2.8, which has none. */
  id: string;
}

/** Returns the topics of the cluster, by name. Rejects when Kafka does not answer within 10 seconds. */
export async function describeTopics(kafka: Kafka): Promise<ReadonlyMap<string, TopicDescription>> {
  const { topics } = await withAdmin(kafka, { timeoutMs: START_TIMEOUT_MS }, (admin) =>
    admin.fetchTopicMetadata(),
  );
  return new Map(
    topics.map(({ name, partitions }) => [
      name,
      { partitions: partitions.length, id: topicIdOf(partitions) },
    ]),
  );
}

/** Topic → its number of partitions. */
export type ExistingTopics = ReadonlyMap<string, number>;

/** Returns the number of partitions of each topic. Rejects as `describeTopics` does. */
export async function readTopics(kafka: Kafka): Promise<ExistingTopics> {
  const topics = await describeTopics(kafka);
  return new Map([...topics].map(([name, { partitions }]) => [name, partitions]));
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
 * of another topic: two processes would serve one endpoint, each with limits of its own.
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

/** kafkajs logs failures that it retries as ERROR. Nobody has to act on them, so they are warnings here. */
function toPino(logger: Logger): logCreator {
  return () => (entry) => {
    const { message, groupId, error, retryCount } = entry.log as Record<string, unknown>;
    const level = entry.level === logLevel.ERROR ? 'warn' : 'info';
    const text = error === undefined ? undefined : messageOf(error);
    logger[level](
      { namespace: entry.namespace, groupId, retryCount, error: text },
      message as string,
    );
  };
}

export type KafkaAccessConfig = z.infer<z.ZodObject<typeof kafkaAccess>>;

/** How a client logs in. The token is read for each connection. */
export type Sasl =
  | {
      mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      username: string;
      password: string;
    }
  | { mechanism: 'oauthbearer'; readToken: () => Promise<string> };

/** How the brokers are reached. */
export interface KafkaAccess {
  brokers: string[];
  /** Null without TLS. */
  tls: SecureContext | null;
  /** Null without a login. */
  sasl: Sasl | null;
}

/** Throws StartupError when settings are missing, contradict each other, or name unusable files. */
export function kafkaAccessOf(config: KafkaAccessConfig): KafkaAccess {
  return { brokers: config.KAFKA_BROKERS, tls: tlsOf(config), sasl: saslOf(config) };
}

function tlsOf({
  KAFKA_SSL: isTls,
  KAFKA_SSL_CA_FILE: ca,
  KAFKA_SSL_CERT_FILE: cert,
  KAFKA_SSL_KEY_FILE: key,
}: KafkaAccessConfig): SecureContext | null {
  if (isTls) return followTlsFiles('Kafka (KAFKA_SSL_*_FILE)', { ca, cert, key });
  if (ca !== undefined || cert !== undefined || key !== undefined) {
    throw new StartupError('KAFKA_SSL_*_FILE is set and KAFKA_SSL is not: set KAFKA_SSL=true.');
  }
  return null;
}

function saslOf({
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_SASL_USERNAME: username,
  KAFKA_SASL_PASSWORD: password,
  KAFKA_SASL_TOKEN_FILE: tokenFile,
}: KafkaAccessConfig): Sasl | null {
  if (mechanism === undefined) {
    if (username === undefined && password === undefined && tokenFile === undefined) return null;
    throw new StartupError('KAFKA_SASL_* is set and KAFKA_SASL_MECHANISM is not: set it.');
  }
  if (mechanism === 'oauthbearer') {
    if (tokenFile === undefined || username !== undefined || password !== undefined) {
      throw needs(mechanism, 'KAFKA_SASL_TOKEN_FILE');
    }
    return { mechanism, readToken: async () => (await readFile(tokenFile, 'utf8')).trim() };
  }
  if (username === undefined || password === undefined || tokenFile !== undefined) {
    throw needs(mechanism, 'KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD');
  }
  return { mechanism, username, password };
}

function needs(mechanism: string, names: string): StartupError {
  return new StartupError(`KAFKA_SASL_MECHANISM=${mechanism} needs ${names}, and no other login.`);
}
