import { settings } from '@posthorn/platform/settings.ts';
import { z } from 'zod';

export const gatewayConfig = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address that the API listens on'),
  PORT: settings.port.default(8080).describe('Port that the API listens on'),
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.redis,
  ...settings.egress,
  ...settings.process(9101),
});

export type GatewayConfig = z.infer<typeof gatewayConfig>;
