import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { canConnect, freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { redisServer } from '../../../tools/local-stack/machine/required-programs.ts';
import { failOnExit } from '../../../tools/local-stack/processes/child.ts';
import type { Children } from '../../../tools/local-stack/processes/children.ts';
import { waitUntil } from '../../../tools/local-stack/waiting.ts';
import { REDIS_PASSWORD, TESTS } from '../process/secured-logins.ts';
import { selfSigned } from '../receivers/self-signed.ts';
import { redisUserOf, usersFile, type RedisUser } from '../../../deploy/setup/redis-rights.ts';

export interface SecuredRedis {
  /** As the user of the tests, who may do everything. */
  url: string;
  caFile: string;
}

/** Starts a Redis that listens with TLS only and asks for a login, with one user for each process that uses it. */
export async function startSecuredRedis(dir: string, children: Children): Promise<SecuredRedis> {
  mkdirSync(dir, { recursive: true });
  const [port = 0] = await freePorts(1);
  const { key, cert } = selfSigned('localhost');
  const caFile = join(dir, 'redis-ca.pem');
  const keyFile = join(dir, 'redis-key.pem');
  writeFileSync(caFile, cert);
  writeFileSync(keyFile, key);
  const child = children.start({
    name: 'redis',
    command: redisServer() ?? 'redis-server',
    args: [
      ...['--port', '0', '--tls-port', String(port), '--bind', '127.0.0.1'],
      ...['--tls-cert-file', caFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', caFile],
      ...['--tls-auth-clients', 'no', '--save', '', '--appendonly', 'no'],
      ...['--user', 'default', 'off'],
      ...['--user', TESTS, 'on', `>${REDIS_PASSWORD}`, '~*', '&*', '+@all'],
      ...userArgs(false, REDIS_PASSWORD),
    ],
    cwd: dir,
    port,
    logPath: join(dir, 'redis.log'),
    stopTimeoutMs: 5_000,
  });
  const listening = waitUntil({ what: `Redis to listen on port ${port}`, timeoutMs: 30_000 }, () =>
    canConnect('127.0.0.1', port),
  );
  await failOnExit(child, listening);
  return { url: `rediss://${TESTS}:${REDIS_PASSWORD}@localhost:${port}`, caFile };
}

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
