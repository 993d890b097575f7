import mongoose, { type Connection, type mongo } from 'mongoose';
import type { SecureContext } from 'node:tls';
import { Gauge, type Registry } from 'prom-client';
import type { z } from 'zod';
import { TimeoutError, withTimeout } from '../async/pause.ts';
import { followDatabaseTime, type FollowedTime, readDatabaseTime } from './database-time.ts';
import { messageOf, StartupError, StoreUnavailableError } from '../service/errors.ts';
import type { ServiceContext } from '../service/run-service.ts';
import { followTlsFiles } from '../service/secure-context.ts';
import {
  createStoreMetrics,
  type OperationOf,
  type StoreMetrics,
} from '../service/store-metrics.ts';
import { hostsOf, type mongodbAccess } from '../service/store-settings.ts';
import { type Database, withDays } from './days/days.ts';
import { type FollowedLayout, followLayout, readLayout } from './days/layout.ts';

type MongoAccessConfig = z.infer<z.ZodObject<typeof mongodbAccess>>;

const { MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError } = mongoose.mongo;

export interface MongoConnection {
  connection: Connection;
  db: Database;
  /** Returns the same database for requests, whose reads end in MongoDB when they have worked for so long. */
  withReadsWithin: (maxReadMs: number) => Database;
  /** Reads the layout of the collections of days now; it is read every few seconds anyway. */
  readLayout: () => Promise<void>;
  /** The time of the database, by which its days are kept. */
  time: FollowedTime;
  isConnected: () => boolean;
  close: () => Promise<void>;
}

/** Connects a service to its database, and follows its time. The connection is closed when the service stops. */
export async function openMongo(
  appName: string,
  { config, lifecycle, registry, logger }: ServiceContext<MongoAccessConfig>,
): Promise<MongoConnection> {
  const mongo = await connectMongo(config.MONGODB_URL, appName, mongoTlsOf(config));
  lifecycle.onStop('mongodb', mongo.close);
  await assertLayout(mongo.db);
  const client = mongo.connection.getClient();
  watchClient(registry, client, client.options.maxPoolSize);
  followDatabaseTime({ lifecycle, logger }, mongo.time);
  onNewPrimary(client, mongo.time.doubt);
  return mongo;
}

/** Another member may have another clock. */
export function onNewPrimary(client: Pick<mongo.MongoClient, 'on'>, listener: () => void): void {
  client.on('topologyDescriptionChanged', ({ previousDescription, newDescription }) => {
    const primary = primaryOf(newDescription);
    if (primary !== null && primary !== primaryOf(previousDescription)) listener();
  });
}

function primaryOf({ servers }: mongo.TopologyDescription): string | null {
  const found = [...servers.values()].find(({ type }) => type === 'RSPrimary');
  return found?.address ?? null;
}

/**
 * Bounds of one operation. A server that is suspended or cut off is noticed within 10 s, by a heartbeat that
 * should come every 5 s; the operations on it fail at once then, and are repeated once: within 25 s in
 * all. The timeout of the socket is for a server that replies to heartbeats only.
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
/** The URL cannot change it: a message with response 202 is stored by a majority. */
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
    // Building an index takes hours where there are many documents; MongoDB replies when it is done.
    ...(isForLongCommands && { socketTimeoutMS: 0 }),
    ...(tls && { tls: true, secureContext: tls }),
    writeConcern: WRITE_CONCERN,
    // The URL cannot change it: a secondary that lags would return what was changed already, and caches would keep it.
    readPreference: 'primary',
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
  const { followed, time } = await openLayoutAndTime(connection, all);
  const days = { ...time, layout: followed.layout };
  return {
    connection,
    db: withDays(all, days),
    withReadsWithin: (maxReadMs) => withDays(all, { ...days, maxReadMs }),
    readLayout: followed.read,
    time,
    isConnected: () => connection.readyState === mongoose.ConnectionStates.connected,
    close: async () => {
      followed.stop();
      await close(connection);
    },
  };
}

/** A service must not be ready before create-indexes has run. */
async function assertLayout(db: Database): Promise<void> {
  if (await readLayout(db)) return;
  throw new StartupError(
    'The collection layout is not in MongoDB yet: run deploy/setup/create-indexes.ts of this version first.',
  );
}

async function openLayoutAndTime(
  connection: Connection,
  db: mongoose.mongo.Db,
): Promise<{ followed: FollowedLayout; time: FollowedTime }> {
  try {
    return { time: await readDatabaseTime(db), followed: await followLayout(db) };
  } catch (error) {
    await close(connection);
    throw new StartupError(
      `Cannot read the time and the collection layout from MongoDB: ${withoutCredentials(error)}. Each user needs the rights of deploy/setup/mongodb-rights.ts.`,
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
    isBrokenWrite(error) ||
    isRetriableServerError(error);
  return isAway ? new StoreUnavailableError(messageOf(error)) : error;
}

/**
 * The driver passes on the error of the socket as it is when the connection breaks while it waits until a large command was
 * written. The command may have arrived.
 */
function isBrokenWrite(error: unknown): boolean {
  const { code, syscall } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  return syscall === 'write' && (code === 'ECONNRESET' || code === 'EPIPE');
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

const OPERATIONS = new Set<string>([
  'find',
  'getMore',
  'aggregate',
  'insert',
  'update',
  'delete',
  'findAndModify',
] satisfies OperationOf<'mongodb'>[]);

type Select = (...args: unknown[]) => Promise<unknown>;

/** A client that is connected has a topology. The driver declares it for its own use only. */
type Client = Pick<mongo.MongoClient, 'on'> & { topology?: unknown };

/**
 * Times the commands of a client, which must have been created with `monitorCommands` and be connected, and counts its
 * connections.
 */
export function watchClient(registry: Registry, client: Client, maxPoolSize: number): void {
  const metrics = createStoreMetrics(registry, 'mongodb');
  watchCommands(client, metrics);
  watchCheckOuts(client, metrics);
  watchSelections(client, metrics);
  watchPool(registry, client, maxPoolSize);
}

function watchCommands(client: Client, metrics: StoreMetrics<'mongodb'>): void {
  client.on('commandSucceeded', ({ commandName, duration, reply }) => {
    const operation = operationOf(commandName);
    // MongoDB replies to a write that no majority has confirmed as to a success.
    if (hasWriteConcernError(reply)) metrics.failed(operation, duration);
    else metrics.succeeded(operation, duration);
  });
  client.on('commandFailed', ({ commandName, duration }) => {
    metrics.failed(operationOf(commandName), duration);
  });
}

/** An operation that gets no connection sends no command. */
function watchCheckOuts(client: Client, metrics: StoreMetrics<'mongodb'>): void {
  client.on('connectionCheckOutFailed', ({ reason, durationMS }) => {
    // The process stops.
    if (reason !== 'poolClosed') metrics.failed('checkOut', durationMS);
  });
}

/** The driver has no event for an operation that found no server, so this takes its place before the method. */
function watchSelections(client: Client, metrics: StoreMetrics<'mongodb'>): void {
  const topology = client.topology as { selectServer: Select } | undefined;
  if (!topology) return;
  const select = topology.selectServer.bind(topology);
  topology.selectServer = (...args) => {
    const startedMs = performance.now();
    const selected = select(...args);
    selected.catch(() => {
      metrics.failed('selectServer', performance.now() - startedMs);
    });
    return selected;
  };
}

function operationOf(commandName: string): OperationOf<'mongodb'> {
  return OPERATIONS.has(commandName) ? (commandName as OperationOf<'mongodb'>) : 'other';
}

function hasWriteConcernError(reply: unknown): boolean {
  return (reply as { writeConcernError?: unknown } | null)?.writeConcernError !== undefined;
}

interface PoolEvent {
  address: string;
  connectionId: number | '<monitor>';
}

/** The first connections are open before anybody can listen: they are counted when they are first used. */
function watchPool(registry: Registry, client: Client, maxPoolSize: number): void {
  const open = new Set<string>();
  const inUse = new Set<string>();
  const keyOf = ({ address, connectionId }: PoolEvent): string => `${address} ${connectionId}`;
  client.on('connectionCreated', (event) => open.add(keyOf(event)));
  client.on('connectionCheckedOut', (event) => {
    open.add(keyOf(event));
    inUse.add(keyOf(event));
  });
  client.on('connectionCheckedIn', (event) => inUse.delete(keyOf(event)));
  client.on('connectionClosed', (event) => {
    open.delete(keyOf(event));
    inUse.delete(keyOf(event));
  });
  new Gauge({
    name: 'posthorn_mongodb_connections',
    help: 'Connections to MongoDB: open, in use by an operation, and the most that may be open to each server (limit).',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.set({ state: 'open' }, open.size);
      this.set({ state: 'in_use' }, inUse.size);
      this.set({ state: 'limit' }, maxPoolSize);
    },
  });
}

/** The server's error code of a write that a unique index refuses (MongoDB, Error Codes). */
export const DUPLICATE_KEY = 11_000;

/** Returns whether a single write was refused because of a unique index. A bulk write has an error for each document. */
export function isDuplicateKey(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === DUPLICATE_KEY;
}
