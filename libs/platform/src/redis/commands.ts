import { Cluster, Command, Redis } from 'ioredis';
import type { Registry } from 'prom-client';
import type { z } from 'zod';
import { createStoreMetrics, type OperationOf } from '../service/store-metrics.ts';
import type { RedisClient } from './connect.ts';

/** The name of a command, its key, and what follows. */
export type RedisCommand = [name: string, key: string, ...rest: (string | number)[]];

export type Reply = [error: Error | null, value?: unknown];

/**
 * Sends commands on any keys, and returns the reply to each, in order. A server gets them in one pipeline. A
 * cluster refuses a pipeline whose keys are on several nodes, and repeats none in which one key has moved:
 * there each command goes to the node of its key by itself.
 */
export async function sendAll(redis: RedisClient, commands: RedisCommand[]): Promise<Reply[]> {
  if (redis instanceof Redis) return (await redis.pipeline(commands).exec()) ?? [];
  return sendEach(redis, commands);
}

/**
 * Returns the value of each key, in order, null without one; waits for late replies. Rejects while no node of these
 * keys can be asked.
 */
export async function readAll(redis: RedisClient, keys: string[]): Promise<(string | null)[]> {
  if (!(redis instanceof Redis)) return readEach(redis, keys);
  return (await readPatiently(redis, 'mget', keys)) as (string | null)[];
}

/** Removes keys. Those of a node that is away stay. */
export async function removeAll(redis: RedisClient, keys: string[]): Promise<void> {
  if (redis instanceof Redis) await redis.del(keys);
  else
    await sendEach(
      redis,
      keys.map((key): RedisCommand => ['del', key]),
    );
}

/** The key of a node that is away counts as one without a value, so that the others are of use. */
async function readEach(cluster: Cluster, keys: string[]): Promise<(string | null)[]> {
  const replies = await Promise.all(
    keys.map((key) => toReply(readPatiently(cluster, 'get', [key]))),
  );
  const [firstError] = replies[0] ?? [];
  if (firstError && replies.every(([error]) => error)) throw firstError;
  return replies.map(([error, value]) => (error ? null : (value as string | null)));
}

function sendEach(cluster: Cluster, commands: RedisCommand[]): Promise<Reply[]> {
  return Promise.all(commands.map(([name, ...args]) => toReply(cluster.call(name, ...args))));
}

function toReply(answer: Promise<unknown>): Promise<Reply> {
  return answer.then(
    (value): Reply => [null, value],
    (error: unknown): Reply => [error as Error],
  );
}

const OPERATIONS: Readonly<Record<string, OperationOf<'redis'>>> = {
  get: 'read',
  mget: 'read',
  hget: 'read',
  hgetall: 'read',
  hmget: 'read',
  hscan: 'read',
  zrangebyscore: 'read',
  set: 'write',
  del: 'write',
  hset: 'write',
  hdel: 'write',
  zadd: 'write',
  zremrangebyscore: 'write',
  incrby: 'write',
  pexpire: 'write',
  publish: 'publish',
};

type Send = Cluster['sendCommand'];

/**
 * Times the commands of a client. The tracing channel of ioredis would copy the arguments of each of them.
 * Of a pipeline only the first command is timed: all of them are answered together.
 */
export function measureCommands<Client extends RedisClient>(
  registry: Registry,
  redis: Client,
): Client {
  const metrics = createStoreMetrics(registry, 'redis');
  const send: Send = redis.sendCommand.bind(redis);
  const sendMeasured: Send = (command, ...rest) => {
    const { name, promise } = command;
    if ((command.pipelineIndex ?? 0) === 0) {
      const startedMs = performance.now();
      const operation = OPERATIONS[name] ?? 'other';
      promise.then(
        () => {
          metrics.succeeded(operation, performance.now() - startedMs);
        },
        () => {
          metrics.failed(operation, performance.now() - startedMs);
        },
      );
    }
    return send(command, ...rest);
  };
  redis.sendCommand = sendMeasured;
  return redis;
}

/** A process that was suspended finds its first read timed out, although the reply is there. */
const READS = 2;
/** Together as long as an idle connection may stand (connect.ts). */
const SERVER_TIMEOUT_MS = 2_500;
/** As for other commands (connect.ts): while a node hangs, the rest of its cluster works, and must not wait longer. */
const CLUSTER_TIMEOUT_MS = 1_000;
/** The message of ioredis when the command timeout ends. */
const LATE = 'Command timed out';

/**
 * Sends a command that only reads, and waits for its reply for longer than other commands do: what others have stored
 * must not count as unknown while Redis is there. On a full machine it is this process that is late: with one core for
 * all parts it read replies after more than a second. Rejects at once while Redis is away, and with an error of Redis.
 */
export async function readPatiently(
  redis: Pick<RedisClient, 'status' | 'sendCommand'>,
  name: 'get' | 'hgetall' | 'mget' | 'zrangebyscore',
  args: readonly (string | number)[],
): Promise<unknown> {
  for (let reads = 1; ; reads += 1) {
    const command = new Command(name, [...args], { replyEncoding: 'utf8' });
    command.setTimeout(redis instanceof Cluster ? CLUSTER_TIMEOUT_MS : SERVER_TIMEOUT_MS);
    try {
      return await redis.sendCommand(command);
    } catch (error) {
      const isLate = error instanceof Error && error.message === LATE;
      if (!isLate || redis.status !== 'ready' || reads === READS) throw error;
    }
  }
}

export interface TakeOverLimits {
  /** Entries beyond this many are left out. */
  most: number;
  /** No read begins later. Each that has begun ends within seconds (`readPatiently`). */
  withinMs: number;
}

/** The entries that former owners of partitions have left for the next one. */
export interface TakenOver<Value> {
  found: Map<string, Value>;
  /** The partitions that were read. What was left in the others is unknown. */
  read: number[];
}

/** Partitions that are read at once: a dispatcher that starts alone may have thousands. */
const READ_AT_ONCE = 16;

/** Reads partitions, sixteen at once. Rejects when none of them can be read. */
export async function takeOverPartitions<Value>(
  readPartition: (partition: number) => Promise<Iterable<[string, Value]>>,
  partitions: readonly number[],
  { most, withinMs }: TakeOverLimits,
): Promise<TakenOver<Value>> {
  const begunMs = performance.now();
  const found = new Map<string, Value>();
  const read: number[] = [];
  const failures: unknown[] = [];
  for (let from = 0; from < partitions.length; from += READ_AT_ONCE) {
    // In a cluster with a node that hangs, each page waits for it.
    if (from > 0 && performance.now() - begunMs >= withinMs) break;
    const page = partitions.slice(from, from + READ_AT_ONCE).map(async (partition) => {
      const entries = await readPartition(partition);
      for (const [id, each] of entries) if (found.size < most) found.set(id, each);
      read.push(partition);
    });
    for (const result of await Promise.allSettled(page))
      if (result.status === 'rejected') failures.push(result.reason);
  }
  // In a cluster, those of a node that is away are unknown, and the others are of use.
  if (failures.length > 0 && read.length === 0) throw failures[0];
  return { found, read };
}

/** The last moment that a Date can hold. */
export const MAX_DATE_MS = 8_640_000_000_000_000;

/** Returns null for JSON that does not fit: whatever is in Redis may come from anybody who can write there. */
export function parseStored<Value>(schema: z.ZodType<Value>, text: string): Value | null {
  try {
    return schema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
