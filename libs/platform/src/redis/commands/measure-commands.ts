import type { Cluster } from 'ioredis';
import type { Registry } from 'prom-client';
import { createStoreMetrics, type OperationOf } from '../../service/stores/store-metrics.ts';
import type { RedisClient } from '../connect.ts';

const OPERATIONS: Readonly<Record<string, OperationOf<'redis'>>> = {
  get: 'read',
  mget: 'read',
  hget: 'read',
  hgetall: 'read',
  hmget: 'read',
  hscan: 'read',
  set: 'write',
  del: 'write',
  hset: 'write',
  hdel: 'write',
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
