import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { redisServer } from '../machine/parts.ts';
import { type Child, orItsDeath } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { settlesWithin, until } from '../waiting.ts';

interface RedisPlace {
  dir: string;
  port: number;
  children: Children;
  logPath: string;
}

/** Without persistence: Redis holds only what can be lost, caches and counters of rate limits. */
export async function startRedis({ dir, port, children, logPath }: RedisPlace): Promise<Child> {
  mkdirSync(dir, { recursive: true });
  const child = children.start({
    name: 'redis',
    command: redisServer() ?? 'redis-server',
    args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    cwd: dir,
    port,
    logPath,
    stopTimeoutMs: 5_000,
  });
  const ready = until({ what: `An answer of Redis on port ${port}`, timeoutMs: 30_000 }, () =>
    redisAnswers('127.0.0.1', port),
  );
  await orItsDeath(child, ready);
  return child;
}

/** Any reply shows a Redis, also "-LOADING" and "-NOAUTH"; only "+PONG" shows one that is ready for this stack. */
export async function redisAnswers(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  socket.write('PING\r\n');
  const answered = once(socket, 'data').then(
    ([data]) => String(data).startsWith('+PONG'),
    () => false,
  );
  const inTime = await settlesWithin(answered, 2_000);
  socket.destroy();
  return inTime && (await answered);
}
