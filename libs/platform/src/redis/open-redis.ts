import type { ServiceContext } from '../service/run-service.ts';
import { measureCommands } from './commands.ts';
import {
  connectRedis,
  type RedisAccessConfig,
  redisAccessOf,
  type RedisClient,
} from './connect.ts';

export interface OpenRedis {
  client: RedisClient;
  /** For messages of channels: a connection that has subscribed accepts no other commands. */
  subscriber: RedisClient;
  isConnected: () => boolean;
}

/** Connects to Redis until the service stops. Throws StartupError as redisAccessOf does. */
export function openRedis({
  config,
  logger,
  lifecycle,
  registry,
}: ServiceContext<RedisAccessConfig>): OpenRedis {
  const access = redisAccessOf(config);
  const client = measureCommands(registry, connectRedis(access, logger));
  const subscriber = connectRedis(access, logger);
  lifecycle.onStop('redis', () => {
    client.disconnect();
    subscriber.disconnect();
  });
  return { client, subscriber, isConnected: () => client.status === 'ready' };
}
