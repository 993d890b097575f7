import {
  coPartitionedTopics,
  type TopicNames,
  topicSpecs,
} from '@posthorn/domain/records/topics.ts';
import { type Admin, Kafka, type logCreator, logLevel, type SASLOptions } from 'kafkajs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';
import type { SecureContext } from 'node:tls';
import type { z } from 'zod';
import { withTimeout } from '../async/pause.ts';
import { readAllCodecs } from './codecs.ts';
import { messageOf, StartupError } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { followTlsFiles } from '../service/secure-context.ts';
import type { kafkaAccess } from '../service/store-settings.ts';

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
  patchRequestQueue();
  patchConsumerGroup();
  patchCodecs();
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

/** Topic → its number of partitions. */
export type ExistingTopics = ReadonlyMap<string, number>;

/** Rejects when Kafka does not answer within 10 seconds. */
export async function readTopics(kafka: Kafka): Promise<ExistingTopics> {
  const { topics } = await withAdmin(kafka, { timeoutMs: START_TIMEOUT_MS }, (admin) =>
    admin.fetchTopicMetadata(),
  );
  return new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
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

const require = createRequire(import.meta.url);

/** The part of kafkajs's consumer group, one for each run of a consumer, that is used here. */
interface ConsumerGroup {
  memberId: string | null;
  /** When the group last answered a heartbeat, by the wall clock. */
  lastRequest: number;
  joinAndSync: () => Promise<void>;
  heartbeat: (options: { interval: number }) => Promise<void>;
  /** Returns a batch for each partition of the broker that was read. */
  fetch: (brokerId: number) => Promise<readonly KafkajsBatch[]>;
}

interface KafkajsBatch {
  messages: readonly unknown[];
  isEmpty: () => boolean;
  /** True when the broker has returned nothing, not even the end of a transaction. */
  isEmptyIncludingFiltered: () => boolean;
}

/** The part of kafkajs's cluster, one for each consumer, that is used here. */
interface Cluster {
  /** Called once in each generation of a group. Returns topic → partition → offset. */
  committedOffsets: () => Record<string, Record<string, string>>;
}

const FETCH_AGAIN_AFTER_MS = 10;
/** After an answer with so many, or with none, the next request waits for nothing. */
const FULL_FETCH = 100;

/**
 * A broker answers a fetch as soon as it has one record: at 200 messages/s that is a request of 24 partitions for each
 * message. So after an answer with few records the next request waits until there are more. The first record after a
 * pause is not delayed: the broker has a request then.
 */
export class FetchPace {
  /** For each broker, when the next request may be sent. */
  readonly #nextMs = new Map<number, number>();

  /** Returns for how long the next request waits, in milliseconds. */
  restMs(brokerId: number, nowMs: number): number {
    return Math.max(0, (this.#nextMs.get(brokerId) ?? 0) - nowMs);
  }

  answered(brokerId: number, records: number, nowMs: number): void {
    const isShort = records > 0 && records < FULL_FETCH;
    this.#nextMs.set(brokerId, isShort ? nowMs + FETCH_AGAIN_AFTER_MS : 0);
  }
}

const REBALANCE_IN_PROGRESS = 27;

/** Member id → the promise for which its next join waits. */
const delays = new Map<string, Promise<void>>();

/** Delays the next join of the member until the promise has resolved; it must not reject. */
export function delayJoin(memberId: string, until: Promise<void>): void {
  delays.set(memberId, until);
}

/**
 * When a consumer of kafkajs 2.2.4 cannot join its group again, because of a time-out or a lost connection, it reads
 * on with the partitions that it had before. When its session has expired it has no member id by then, and without
 * one kafkajs sends no heartbeat, from whose answer it would learn that. After an outage of Kafka of 15 s, two
 * dispatchers delivered each message, for a minute. After the patch a consumer whose last join failed has no
 * heartbeat, as during a rebalance: it hands no record over, and joins again.
 *
 * kafkajs joins at once when its group changes. After the patch a join can be delayed.
 *
 * kafkajs times its heartbeats by the wall clock: when that was set back by an hour, it sent none for an hour. Its
 * group gave its partitions to others after ten seconds, and it continued to read them. After the patch it sends the
 * next one in time.
 *
 * kafkajs passes the ends of transactions, and the records of aborted ones, and hands over nothing of them. So they were
 * never committed: the group seemed to lag behind for ever, and its consumer to have stalled. After the patch such a
 * batch is handed over without records.
 *
 * kafkajs keeps the committed offsets of a group once for all consumers of a client. One that joined removed those of
 * another: that one ended with a TypeError, which a consumer does not survive. After the patch each has its own.
 *
 * kafkajs fetches again when the records of the last answer are handed over. After the patch it waits, see
 * FetchPace.
 */
export const patchConsumerGroup = once(() => {
  const { prototype } = require('kafkajs/src/consumer/consumerGroup.js') as {
    prototype: ConsumerGroup;
  };
  const { prototype: cluster } = require('kafkajs/src/cluster/index.js') as { prototype: Cluster };
  cluster.committedOffsets = () => ({});
  const { createErrorFromCode } = require('kafkajs/src/protocol/error.js') as {
    createErrorFromCode: (code: number) => Error;
  };
  const members = new WeakSet<ConsumerGroup>();
  const { joinAndSync, heartbeat, fetch } = prototype;
  prototype.joinAndSync = async function (this: ConsumerGroup): Promise<void> {
    members.delete(this);
    const memberId = this.memberId ?? '';
    const delay = delays.get(memberId);
    delays.delete(memberId);
    await delay;
    await joinAndSync.call(this);
    members.add(this);
  };
  prototype.heartbeat = async function (this: ConsumerGroup, options): Promise<void> {
    if (!members.has(this)) throw createErrorFromCode(REBALANCE_IN_PROGRESS);
    this.lastRequest = Math.min(this.lastRequest, Date.now());
    await heartbeat.call(this, options);
  };
  const paces = new WeakMap<ConsumerGroup, FetchPace>();
  prototype.fetch = async function (this: ConsumerGroup, brokerId) {
    const pace = paces.get(this) ?? new FetchPace();
    paces.set(this, pace);
    const restMs = pace.restMs(brokerId, performance.now());
    if (restMs > 0) await wait(restMs);
    const batches = await fetch.call(this, brokerId);
    const records = batches.reduce((sum, { messages }) => sum + messages.length, 0);
    pace.answered(brokerId, records, performance.now());
    for (const batch of batches) {
      if (batch.isEmpty() && !batch.isEmptyIncludingFiltered()) batch.isEmpty = () => false;
    }
    return batches;
  };
});

/** The part of kafkajs's request queue, one for each connection, that is used here. */
interface RequestQueue {
  pending: unknown[];
  /** Sets the timer that checks `pending` again. */
  scheduleCheckPendingRequests: () => void;
}

/**
 * In kafkajs 2.2.4 each connection checks its queue every millisecond for as long as it lives, whether
 * or not a request waits (tulios/kafkajs#1704). In each idle service that was about 1,000 wake-ups a
 * second and 2 % of a core. After the patch it checks only while a request waits.
 */
export const patchRequestQueue = once(() => {
  const { prototype } = require('kafkajs/src/network/requestQueue/index.js') as {
    prototype: RequestQueue;
  };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this);
  };
});

const patchCodecs = once(readAllCodecs);

/** Returns a function that applies the patch at its first call. */
export function once(patch: () => void): () => void {
  let isPatched = false;
  return () => {
    if (isPatched) return;
    isPatched = true;
    patch();
  };
}
