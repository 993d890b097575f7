import mongoose, { type Connection } from 'mongoose';
import { messageOf, StartupError, StoreUnavailableError } from '../service/errors.ts';
import type { ServiceContext } from '../service/run-service.ts';

const { MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError } = mongoose.mongo;

export interface MongoConnection {
  connection: Connection;
  db: mongoose.mongo.Db;
  isConnected: () => boolean;
  close: () => Promise<void>;
}

/** Connects a service to its database. The connection is closed when the service stops. */
export async function openMongo(
  appName: string,
  { config, lifecycle }: ServiceContext<{ MONGODB_URL: string }>,
): Promise<MongoConnection> {
  const mongo = await connectMongo(config.MONGODB_URL, appName);
  lifecycle.onStop('mongodb', mongo.close);
  return mongo;
}

/**
 * Connects with majority writes. Throws StartupError after 5 seconds when no server responds. Makes no
 * collections: mongod has crashed when two connections made one collection at once.
 */
export async function connectMongo(url: string, appName: string): Promise<MongoConnection> {
  const connection = mongoose.createConnection(url, {
    appName,
    autoCreate: false,
    autoIndex: false,
    bufferCommands: false,
    maxPoolSize: 20,
    serverSelectionTimeoutMS: 5_000,
    socketTimeoutMS: 20_000,
    writeConcern: { w: 'majority', wtimeoutMS: 10_000 },
  });
  try {
    await connection.asPromise();
  } catch (error) {
    throw new StartupError(
      `MongoDB cannot be used at ${hostsOf(url)}: ${withoutCredentials(error)}. Start it, or correct MONGODB_URL.`,
    );
  }
  const db = connection.db;
  if (!db) throw new StartupError('MONGODB_URL names no database; end it with /posthorn.');
  return {
    connection,
    db,
    isConnected: () => connection.readyState === mongoose.ConnectionStates.connected,
    close: () => connection.close(),
  };
}

/** Returns a StoreUnavailableError when MongoDB cannot be reached, otherwise the error itself. */
export function asStoreError(error: unknown): unknown {
  const isAway =
    error instanceof MongoNetworkError ||
    error instanceof MongoNotConnectedError ||
    error instanceof MongoServerSelectionError ||
    isRetriableServerError(error);
  return isAway ? new StoreUnavailableError(messageOf(error)) : error;
}

/** An election or a time-out of the write concern: the write may or may not have happened. */
function isRetriableServerError(error: unknown): boolean {
  return (
    error instanceof mongoose.mongo.MongoError &&
    (error.hasErrorLabel('RetryableWriteError') || error.name === 'MongoWriteConcernError')
  );
}

function hostsOf(url: string): string {
  return /^mongodb(?:\+srv)?:\/\/(?:[^@/]*@)?([^/?]*)/.exec(url)?.[1] ?? 'the given address';
}

function withoutCredentials(error: unknown): string {
  return messageOf(error)
    .replace(/\/\/[^@\s]*@/g, '//')
    .replace(/\.$/, '');
}
