import { Cluster, Command } from 'ioredis';
import type { RedisClient } from '../connect.ts';

/** A process that was suspended finds its first read timed out, although the reply is there. */
const READS = 2;
/** Together as long as a connection may stand on which nothing arrives (connect.ts). */
const SERVER_TIMEOUT_MS = 2_500;
/** As for other commands (connect.ts): while a node hangs, the rest of its cluster works, and must not wait longer. */
const CLUSTER_TIMEOUT_MS = 1_000;
/** What ioredis says when the command timeout ends. */
const LATE = 'Command timed out';

/**
 * Sends a command that only reads, and waits for its reply for longer than other commands do: what others have stored
 * must not count as unknown while Redis is there. On a full machine it is this process that is late: with one core for
 * all parts it read replies after more than a second. Rejects at once while Redis is away, and with an error of Redis.
 */
export async function readPatiently(
  redis: Pick<RedisClient, 'status' | 'sendCommand'>,
  name: 'get' | 'hgetall' | 'mget',
  keys: readonly string[],
): Promise<unknown> {
  for (let reads = 1; ; reads += 1) {
    const command = new Command(name, [...keys], { replyEncoding: 'utf8' });
    command.setTimeout(redis instanceof Cluster ? CLUSTER_TIMEOUT_MS : SERVER_TIMEOUT_MS);
    try {
      return await redis.sendCommand(command);
    } catch (error) {
      const isLate = error instanceof Error && error.message === LATE;
      if (!isLate || redis.status !== 'ready' || reads === READS) throw error;
    }
  }
}
