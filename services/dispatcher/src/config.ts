import { settings } from '@posthorn/platform/settings.ts';
import { z } from 'zod';

export const dispatcherConfig = z.object({
  DELIVERY_TIMEOUT_MS: z.coerce
    .number()
    .int('must be milliseconds from 100 to 60000')
    .min(100, 'must be milliseconds from 100 to 60000')
    .max(60_000, 'must be milliseconds from 100 to 60000')
    .default(15_000)
    .describe('How long one attempt may take, from the look-up to the end of the answer'),
  MAX_IN_FLIGHT: z.coerce
    .number()
    .int('must be a whole number from 1 to 20000')
    .min(1, 'must be a whole number from 1 to 20000')
    .max(20_000, 'must be a whole number from 1 to 20000')
    .default(2_000)
    .describe('Deliveries under work at once in one dispatcher: fresh ones, and as many retries'),
  SLOW_LANE_CONCURRENCY: z.coerce
    .number()
    .int('must be a whole number from 1 to 20000')
    .min(1, 'must be a whole number from 1 to 20000')
    .max(20_000, 'must be a whole number from 1 to 20000')
    .default(500)
    .describe('Attempts under way at once in the slow lane of one dispatcher'),
  ENDPOINT_CONCURRENCY: z.coerce
    .number()
    .int('must be a whole number from 1 to 1000')
    .min(1, 'must be a whole number from 1 to 1000')
    .max(1_000, 'must be a whole number from 1 to 1000')
    .default(512)
    .describe('Attempts under way at once to one webhook'),
  CIRCUIT_RESET_MS: z.coerce
    .number()
    .int('must be milliseconds from 100 to 600000')
    .min(100, 'must be milliseconds from 100 to 600000')
    .max(600_000, 'must be milliseconds from 100 to 600000')
    .default(30_000)
    .describe('How long an open circuit waits before it lets a probe through'),
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.encryption,
  ...settings.redis,
  ...settings.egress,
  ...settings.process(9102),
});

export type DispatcherConfig = z.infer<typeof dispatcherConfig>;
