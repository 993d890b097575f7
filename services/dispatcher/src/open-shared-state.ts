import { randomUUID } from 'node:crypto';
import { redisAccessOf } from '@posthorn/platform/redis/access.ts';
import { connectRedis } from '@posthorn/platform/redis/connect.ts';
import {
  createEndpointFlows,
  type EndpointFlows,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import { measureCommands } from '@posthorn/platform/redis/commands/measure-commands.ts';
import { createLiveAttempts, type LiveAttempts } from '@posthorn/platform/redis/live-attempts.ts';
import { createOpenCircuits, type OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import {
  createReadingPositions,
  type ReadingPositions,
} from '@posthorn/platform/redis/reading-positions.ts';
import {
  createRunningAttempts,
  type RunningAttempts,
} from '@posthorn/platform/redis/running-attempts.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { DispatcherConfig } from './config.ts';

/** What dispatchers and gateways share through Redis. Redis may be away at any time. */
export interface SharedState {
  openCircuits: OpenCircuits;
  endpointFlows: EndpointFlows;
  runningAttempts: RunningAttempts;
  liveAttempts: LiveAttempts;
  readingPositions: ReadingPositions;
  /** Calls `act` each time that Redis is connected, the first time included. */
  onReady: (act: () => void) => void;
  isConnected: () => boolean;
}

export function openSharedState({
  config,
  logger,
  lifecycle,
  registry,
}: ServiceContext<DispatcherConfig>): SharedState {
  const access = redisAccessOf(config);
  const redis = measureCommands(registry, connectRedis(access, logger));
  lifecycle.onStop('redis', () => {
    redis.disconnect();
  });
  return {
    openCircuits: createOpenCircuits(redis, config.REDIS_PREFIX, systemClockMs),
    endpointFlows: createEndpointFlows(redis, config.REDIS_PREFIX, systemClockMs),
    runningAttempts: createRunningAttempts(redis, config.REDIS_PREFIX, randomUUID()),
    liveAttempts: createLiveAttempts(redis, config.REDIS_PREFIX, systemClockMs),
    readingPositions: createReadingPositions(redis, config.REDIS_PREFIX, systemClockMs),
    onReady: (act) => redis.on('ready', act),
    isConnected: () => redis.status === 'ready',
  };
}
