import { mkdirSync } from 'node:fs';
import { redisServer } from '../machine/required-programs.ts';
import { type Child, failOnExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { isRedisReady } from '../redis/readiness.ts';
import { waitUntil } from '../waiting.ts';

interface RedisOptions {
  dir: string;
  port: number;
  children: Children;
  logPath: string;
}

/** Starts Redis without persistence: it holds only caches and rate limit counters, which may be lost. */
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
