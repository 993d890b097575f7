import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canConnect, freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { redisServer } from '../../../tools/local-stack/machine/required-programs.ts';
import { failOnExit } from '../../../tools/local-stack/processes/child.ts';
import type { Children } from '../../../tools/local-stack/processes/children.ts';
import { waitUntil } from '../../../tools/local-stack/waiting.ts';
import { REDIS_PASSWORD, TESTS } from '../process/secured-logins.ts';
import { selfSigned } from '../receivers/self-signed.ts';
import { userArgs } from './redis-users.ts';

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
