import { mkdirSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { redisServer } from '../machine/required-programs.ts';
import { type Child, failOnExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { waitUntil, settlesWithin } from '../waiting.ts';

interface RedisOptions {
  dir: string;
  port: number;
  children: Children;
  logPath: string;
}

/** Starts Redis without persistence: it has only caches and rate limit counters, which may be lost. */
export async function startRedis({ dir, port, children, logPath }: RedisOptions): Promise<Child> {
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
  const ready = waitUntil({ what: `a reply from Redis on port ${port}`, timeoutMs: 30_000 }, () =>
    isRedisReady('127.0.0.1', port),
  );
  await failOnExit(child, ready);
  return child;
}

/** Returns whether Redis replies "+PONG". "-LOADING" and "-NOAUTH" come from a Redis that this stack cannot use (yet). */
export async function isRedisReady(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  socket.write('PING\r\n');
  const replied = once(socket, 'data').then(
    ([data]) => String(data).startsWith('+PONG'),
    () => false,
  );
  const isInTime = await settlesWithin(replied, 2_000);
  socket.destroy();
  return isInTime && (await replied);
}
