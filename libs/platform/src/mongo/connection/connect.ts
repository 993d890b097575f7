import type { SecureContext } from 'node:tls';
import type { z } from 'zod';
import mongoose, { type Connection } from 'mongoose';
import { TimeoutError, withTimeout } from '../../async/with-timeout.ts';
import { messageOf, StartupError, StoreUnavailableError } from '../../service/errors.ts';
import type { ServiceContext } from '../../service/run-service.ts';
import type { mongodbAccess } from '../../service/stores/store-settings.ts';
import { hostsOf } from '../../service/stores/store-urls.ts';
import { monotonicClockMs, systemClockMs } from '../../service/clock-and-ids.ts';
import { withDays, type Database } from '../days/days.ts';
import { followLayout, type FollowedLayout } from '../days/follow-layout.ts';
import { readLayout } from '../days/stored-layout.ts';
import { watchClient } from './watch-client.ts';
import { followTlsFiles } from '../../tls/secure-context.ts';

type MongoAccessConfig = z.infer<z.ZodObject<typeof mongodbAccess>>;

const { MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError } = mongoose.mongo;

export interface MongoConnection {
  connection: Connection;
  db: Database;
  /** Returns the same database for requests, whose reads end in MongoDB when they have worked for so long. */
  withReadsWithin: (maxReadMs: number) => Database;
  /** Reads where messages and deliveries are, which is read again every few seconds anyway. */
  readLayout: () => Promise<void>;
  isConnected: () => boolean;
  close: () => Promise<void>;
}

/** Connects a service to its database. The connection is closed when the service stops. */
export async function openMongo(
  appName: string,
  { config, lifecycle, registry }: ServiceContext<MongoAccessConfig>,
): Promise<MongoConnection> {
  const mongo = await connectMongo(config.MONGODB_URL, appName, mongoTlsOf(config));
  lifecycle.onStop('mongodb', mongo.close);
  await assertLayout(mongo.db);
  const client = mongo.connection.getClient();
  watchClient(registry, client, client.options.maxPoolSize);
  return mongo;
}

/**
 * Bounds of one operation. A server that is suspended or cut off is noticed within 10 s, by a heartbeat that
 * should come every 5 s; the operations on it fail at once then, and are repeated once: within 25 s in
 * all. The timeout of the socket is for a server that answers heartbeats only.
 */
const BOUNDS = {
  /** Without a primary. Elections take less. */
  serverSelectionTimeoutMS: 5_000,
  /** Until a connection of the pool is free; without this bound an operation waits for ever. */
  waitQueueTimeoutMS: 5_000,
  connectTimeoutMS: 5_000,
  heartbeatFrequencyMS: 5_000,
  socketTimeoutMS: 20_000,
  maxPoolSize: 20,
} as const;
/** Not even the URL changes it: what is answered with 202 is on a majority. */
const WRITE_CONCERN = { w: 'majority', journal: true, wtimeoutMS: 10_000 } as const;
/** Closing notifies the server; a suspended one never replies. */
const CLOSE_WITHIN_MS = 2_000;

/** Null without files: then the URL alone decides about TLS. */
export function mongoTlsOf({
  MONGODB_TLS_CA_FILE: ca,
  MONGODB_TLS_CERT_FILE: cert,
  MONGODB_TLS_KEY_FILE: key,
}: MongoAccessConfig): SecureContext | null {
  if (ca === undefined && cert === undefined && key === undefined) return null;
  return followTlsFiles('MongoDB (MONGODB_TLS_*_FILE)', { ca, cert, key });
}

/**
 * Connects with majority writes; other options in the URL win over those here. Throws StartupError after
 * 5 seconds when no server responds. Makes no collections: mongod has crashed when two connections made
 * one collection at once.
 */
export async function connectMongo(
  url: string,
  appName: string,
  tls: SecureContext | null = null,
  { isForLongCommands = false }: { isForLongCommands?: boolean } = {},
): Promise<MongoConnection> {
  const connection = mongoose.createConnection(url, {
    ...withoutOptionsOf(url, { appName, ...BOUNDS }),
    // Building an index takes hours where there are many documents; MongoDB answers when it is done.
    ...(isForLongCommands && { socketTimeoutMS: 0 }),
    ...(tls && { tls: true, secureContext: tls }),
    writeConcern: WRITE_CONCERN,
    autoCreate: false,
    autoIndex: false,
    bufferCommands: false,
    // For the metrics. Without listeners it costs nothing worth measuring.
    monitorCommands: true,
  });
  try {
    await connection.asPromise();
  } catch (error) {
    throw new StartupError(
      `MongoDB cannot be used at ${hostsOf(url)}: ${withoutCredentials(error)}. Start it, or correct MONGODB_URL and MONGODB_TLS_*.`,
    );
  }
  if (!connection.db) {
    throw new StartupError('MONGODB_URL names no database; end it with /posthorn.');
  }
  const all = connection.db;
  const followed = await openLayout(connection, all);
  const days = { layout: followed.layout, nowMs: systemClockMs };
  return {
    connection,
    db: withDays(all, days),
    withReadsWithin: (maxReadMs) => withDays(all, { ...days, maxReadMs }),
    readLayout: followed.read,
    isConnected: () => connection.readyState === mongoose.ConnectionStates.connected,
    close: async () => {
      followed.stop();
      await close(connection);
    },
  };
}

/** In a rollout, a service of a new version must not be ready before it knows where messages are. */
async function assertLayout(db: Database): Promise<void> {
  if (await readLayout(db)) return;
  throw new StartupError(
    'MongoDB does not tell where messages are: run deploy/setup/create-indexes.ts of this version first.',
  );
}

async function openLayout(connection: Connection, db: mongoose.mongo.Db): Promise<FollowedLayout> {
  try {
    return await followLayout(db, { nowMs: systemClockMs, monotonicMs: monotonicClockMs });
  } catch (error) {
    await close(connection);
    throw new StartupError(
      `MongoDB does not tell where messages are: ${withoutCredentials(error)}. Each user needs the rights of deploy/setup/mongodb-rights.ts.`,
    );
  }
}

async function close(connection: Connection): Promise<void> {
  await withTimeout(connection.close(), CLOSE_WITHIN_MS).catch((error: unknown) => {
    if (!(error instanceof TimeoutError)) throw error;
  });
}

/** Leaves out what the URL sets; its names may be written in any case. */
export function withoutOptionsOf<Options extends object>(
  url: string,
  options: Options,
): Partial<Options> {
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
  const given = new Set([...new URLSearchParams(query).keys()].map((name) => name.toLowerCase()));
  const kept = Object.entries(options).filter(([name]) => !given.has(name.toLowerCase()));
  return Object.fromEntries(kept) as Partial<Options>;
}

/** Returns a StoreUnavailableError when MongoDB cannot be reached, otherwise the error itself. */
export function asStoreError(error: unknown): unknown {
  const isAway =
    error instanceof MongoNetworkError ||
    error instanceof MongoNotConnectedError ||
    error instanceof MongoServerSelectionError ||
    isPoolError(error) ||
    isRetriableServerError(error);
  return isAway ? new StoreUnavailableError(messageOf(error)) : error;
}

/** The driver does not export the classes of these two. */
function isPoolError(error: unknown): boolean {
  if (!(error instanceof mongoose.mongo.MongoDriverError)) return false;
  return error.name === 'MongoWaitQueueTimeoutError' || error.name === 'MongoPoolClosedError';
}

/**
 * Codes of a server that stops, steps down, has no majority, or ended an operation for its time. Only
 * writes have the label of a retriable error.
 */
const AWAY_CODES = new Set<unknown>([
  50, 89, 91, 134, 189, 262, 10_107, 11_600, 11_602, 13_435, 13_436,
]);

/** An election or a timeout of the write concern: the write may or may not have happened. */
function isRetriableServerError(error: unknown): boolean {
  if (!(error instanceof mongoose.mongo.MongoError)) return false;
  return (
    error.hasErrorLabel('RetryableWriteError') ||
    error.name === 'MongoWriteConcernError' ||
    AWAY_CODES.has(error.code)
  );
}

/** The driver quotes the URL in some errors. Up to the last `@`: a password may contain one. */
function withoutCredentials(error: unknown): string {
  return messageOf(error)
    .replace(/\/\/\S*@/g, '//')
    .replace(/\.$/, '');
}
