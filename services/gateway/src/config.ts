import { settings } from '@posthorn/platform/settings.ts';
import { z } from 'zod';

const perMinute = z.coerce
  .number('must be a whole number from 0')
  .int('must be a whole number from 0')
  .min(0, 'must be a whole number from 0');

export const gatewayConfig = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address that the API listens on'),
  PORT: settings.port.default(8080).describe('Port that the API listens on'),
  RATE_LIMIT_COMPANY_PER_MINUTE: perMinute
    .default(300_000)
    .describe('Requests a minute of one company at all gateways together; 0 for no limit'),
  RATE_LIMIT_ADDRESS_PER_MINUTE: perMinute
    .default(300_000)
    .describe('Requests a minute of one client address (IPv6: one /64); 0 for no limit'),
  WRONG_KEYS_PER_MINUTE: perMinute
    .default(100)
    .describe('Wrong API keys a minute of one client address; 0 for no limit'),
  TRUSTED_PROXIES: z.coerce
    .number('must be a whole number from 0 to 10')
    .int('must be a whole number from 0 to 10')
    .min(0, 'must be a whole number from 0 to 10')
    .max(10, 'must be a whole number from 0 to 10')
    .default(0)
    .describe('Proxies in front whose X-Forwarded-For is believed, for the client address'),
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.encryption,
  ...settings.redis,
  ...settings.egress,
  ...settings.process(9101),
});

export type GatewayConfig = z.infer<typeof gatewayConfig>;
