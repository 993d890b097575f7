import { egressProxySettings } from '@posthorn/platform/security/egress.ts';
import { settings, wholeNumber } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';

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
