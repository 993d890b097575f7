import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { RedisClient } from '@posthorn/platform/redis/connect.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { GatewayConfig } from '../config.ts';
import { createRateLimits, type RateLimits } from './rate-limits.ts';

/** Ten a second: no person's page asks for more, and the requests of visitors count for their company too. */
const VISIT_PER_MINUTE = 600;

/** Opens the configured limits, which share their counts until the gateway stops. */
export function openRateLimits(
  { config, logger, registry, lifecycle }: ServiceContext<GatewayConfig>,
  redis: RedisClient,
  budgets: MemoryBudgets,
): RateLimits {
  const countsBytes = memoryShare('gateway', 'rate_counts', config.MEMORY_MIB);
  const rateLimits = createRateLimits({
    redis,
    prefix: config.REDIS_PREFIX,
    limits: {
      company: config.RATE_LIMIT_COMPANY_PER_MINUTE,
      visit: VISIT_PER_MINUTE,
      address: config.RATE_LIMIT_ADDRESS_PER_MINUTE,
      wrongKeys: config.WRONG_KEYS_PER_MINUTE,
    },
    countsBytes,
    registry,
    logger,
    nowMs: systemClockMs,
  });
  budgets.add('rate_counts', countsBytes, rateLimits.usedBytes);
  rateLimits.start();
  lifecycle.onStop('rate limits', rateLimits.stop);
  return rateLimits;
}
