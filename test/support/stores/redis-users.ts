import type { Redis } from 'ioredis';
import { redisUserOf, usersFile, type RedisUser } from '../../../deploy/setup/redis-rights.ts';

/** The keys of every namespace of a test begin with it. */
const PREFIX = 't*:';

/** Returns arguments of redis-server: a user for each process, with what docs/security.md lists and no more. */
export function userArgs(isCluster: boolean, password: string): string[] {
  const lines = usersFile({ prefix: PREFIX, isCluster }).trim().split('\n');
  return lines.flatMap((line) => `--${line} >${password}`.split(' '));
}

/** Returns the URL with the user of a process in place of that of the tests. */
export function urlAs(user: RedisUser, text: string): string {
  const url = new URL(text);
  url.username = redisUserOf(user);
  return url.href;
}

/**
 * Returns what servers have refused to the users of processes since they started: Posthorn goes on without
 * Redis, so that no story fails for a right that is missing.
 */
export async function refusedBy(servers: readonly Redis[]): Promise<string[]> {
  const logs = await Promise.all(servers.map((server) => server.acl('LOG')));
  const entries = (logs.flat() as unknown[][]).map(toEntry);
  return entries
    .filter(({ username = '' }) => username.startsWith('posthorn-'))
    .filter(({ object }) => object !== 'client|setinfo')
    .map(({ username = '', reason = '', object = '' }) => `${username}: ${reason} ${object}`);
}

/** A reply has names and values in turns. */
function toEntry(reply: unknown[]): Record<string, string> {
  const pairs = Array.from({ length: reply.length / 2 }, (_, n) => reply.slice(2 * n, 2 * n + 2));
  return Object.fromEntries(pairs.map(([name, value]) => [String(name), String(value)]));
}
