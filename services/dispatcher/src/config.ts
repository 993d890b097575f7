import { egressProxySettings } from '@posthorn/platform/security/egress.ts';
import { settings, wholeNumber } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import type { QueueLimits } from './isolation/queues.ts';

export const dispatcherConfig = z.object({
  DELIVERY_TIMEOUT_MS: wholeNumber(100, 60_000, 'milliseconds')
    .default(15_000)
    .describe(
      'Timeout of one attempt without `timeoutSeconds`, from look-up of the host to end of the response; a token request has as long before it',
    ),
  MAX_IN_FLIGHT: wholeNumber(1, 20_000)
    .default(2_000)
    .describe('Attempts under way at once in one dispatcher, without the slow lane'),
  HOST_ATTEMPTS_PER_SECOND: wholeNumber(0, 100_000)
    .default(1_500)
    .describe(
      'Attempts per second of one company to one host, and token requests to one, from each dispatcher; 0 for no limit',
    ),
  CIRCUIT_RESET_MS: wholeNumber(100, 600_000, 'milliseconds')
    .default(30_000)
    .describe(
      'How long a circuit stays open before it lets a probe through, and how long an attempt is deferred when the egress proxy failed',
    ),
  ...settings.memory('dispatcher'),
  ...settings.concurrency,
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.encryption,
  ...settings.redis,
  ...settings.egress,
  ...egressProxySettings,
  ...settings.tracing,
  ...settings.process(9102),
});

export type DispatcherConfig = z.infer<typeof dispatcherConfig>;

/** An endpoint that fails every attempt goes down to one at a time. */
const CONCURRENCY_FLOOR = 1;

/** Attempts under way at once in the slow lane of one dispatcher. */
export const SLOW_LANE_CONCURRENCY = 500;

/** About 5 ms of work. The slow lane has a share of its own, so that a burst does not keep it waiting. */
const STARTS_PER_LOOP = { fast: 16, slow: 4 };

export function queueLimitsOf(config: DispatcherConfig): QueueLimits {
  // However well an endpoint does, half of the slots are left for others.
  const halfOfSlots = Math.ceil(config.MAX_IN_FLIGHT / 2);
  const ceiling = Math.max(1, Math.min(config.ENDPOINT_CONCURRENCY_MAX, halfOfSlots));
  const start = Math.min(config.ENDPOINT_CONCURRENCY, ceiling);
  return {
    perEndpoint: { floor: CONCURRENCY_FLOOR, start, ceiling },
    perHostPerSecond: config.HOST_ATTEMPTS_PER_SECOND,
    fast: config.MAX_IN_FLIGHT,
    slow: SLOW_LANE_CONCURRENCY,
    startsPerLoop: STARTS_PER_LOOP,
  };
}
