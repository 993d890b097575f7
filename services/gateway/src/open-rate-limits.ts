import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import type { Redis } from 'ioredis';
import type { GatewayConfig } from './config.ts';
import { createRateLimits, type RateLimits } from './rate-limits.ts';

/** The limits as configured, sharing what they count until the gateway stops. */
export function openRateLimits(
  { config, registry, lifecycle }: ServiceContext<GatewayConfig>,
  redis: Redis,
): RateLimits {
  const rateLimits = createRateLimits({
    redis,
    prefix: config.REDIS_PREFIX,
    limits: {
      company: config.RATE_LIMIT_COMPANY_PER_MINUTE,
      address: config.RATE_LIMIT_ADDRESS_PER_MINUTE,
      wrongKeys: config.WRONG_KEYS_PER_MINUTE,
    },
    registry,
    nowMs: systemClockMs,
  });
  rateLimits.start();
  lifecycle.onStop('rate limits', rateLimits.stop);
  return rateLimits;
}
