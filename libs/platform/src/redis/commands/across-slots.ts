import { Redis, type Cluster } from 'ioredis';
import type { RedisClient } from '../connect.ts';
import { readPatiently } from './read-patiently.ts';

/** The name of a command, its key, and what follows. */
export type Command = [name: string, key: string, ...rest: (string | number)[]];

export type Reply = [error: Error | null, value?: unknown];

/**
 * Sends commands on any keys, and returns the reply to each, in order. A server gets them in one pipeline. A
 * cluster refuses a pipeline whose keys are on several nodes, and repeats none of which one key has moved:
 * there each command goes to the node of its key by itself.
 */
export async function sendAll(redis: RedisClient, commands: Command[]): Promise<Reply[]> {
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
      keys.map((key): Command => ['del', key]),
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

function sendEach(cluster: Cluster, commands: Command[]): Promise<Reply[]> {
  return Promise.all(commands.map(([name, ...args]) => toReply(cluster.call(name, ...args))));
}

function toReply(answer: Promise<unknown>): Promise<Reply> {
  return answer.then(
    (value): Reply => [null, value],
    (error: unknown): Reply => [error as Error],
  );
}
