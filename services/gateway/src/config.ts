import { parseCidr } from '@posthorn/domain/egress.ts';
import { settings, wholeNumber } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';

const perMinute = wholeNumber(0, Infinity);

const sourceIps = z
  .string()
  .transform((text) => text.split(',').map((range) => range.trim()))
  .refine((ranges) => ranges.every((range) => parseCidr(range) !== null), {
    message: 'must be address ranges such as 203.0.113.8/32, separated by commas',
  });

/** The bound of one owner. A request beyond it is 409 quota_exceeded. Existing objects stay. */
const quotas = z.object({
  QUOTA_PROJECTS_PER_COMPANY: wholeNumber(1, 10_000_000)
    .default(10_000)
    .describe('Projects of one company'),
  QUOTA_APPS_PER_COMPANY: wholeNumber(1, 10_000_000)
    .default(1_000_000)
    .describe('Apps of one company'),
  QUOTA_WEBHOOKS_PER_APP: wholeNumber(1, 1_000_000).default(10_000).describe('Webhooks of one app'),
  QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT: wholeNumber(1, 1_000_000)
    .default(10_000)
    .describe('Global webhooks of one project'),
  QUOTA_KEYS_PER_COMPANY: wholeNumber(1, 1_000_000)
    .default(1_000)
    .describe('API keys of one company'),
  // A message is one document of at most 16 MB: 93,000 targets and their first response did not fit.
  QUOTA_TARGETS_PER_MESSAGE: wholeNumber(1, 50_000)
    .default(10_000)
    .describe('Webhooks that one message may go to'),
});

export type QuotaConfig = z.infer<typeof quotas>;

/** The settings of every process that accepts messages. */
const accepting = {
  RATE_LIMIT_COMPANY_PER_MINUTE: perMinute
    .default(300_000)
    .describe(
      'Requests, and records of topics, per minute of one company, over all processes; 0 for no limit',
    ),
  ACCEPT_LINGER_MS: wholeNumber(0, 100)
    .default(30)
    .describe(
      'How long a message waits for others at most, to be stored and published with them, when several are expected in that time',
    ),
  ...settings.ingest,
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.encryption,
  ...settings.redis,
  ...settings.tracing,
};

export const ingestConfig = z.object({
  ...accepting,
  QUOTA_TARGETS_PER_MESSAGE: quotas.shape.QUOTA_TARGETS_PER_MESSAGE,
  ...settings.memory('ingest'),
  ...settings.process(9104),
});

export type IngestConfig = z.infer<typeof ingestConfig>;

export const gatewayConfig = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address that the API listens on'),
  PORT: settings.port.default(8080).describe('Port that the API listens on'),
  RATE_LIMIT_ADDRESS_PER_MINUTE: perMinute
    .default(300_000)
    .describe('Requests per minute of one client address (IPv6: one /64); 0 for no limit'),
  WRONG_KEYS_PER_MINUTE: perMinute
    .default(100)
    .describe('Wrong API keys per minute of one client address; 0 for no limit'),
  TRUSTED_PROXIES: wholeNumber(0, 10)
    .default(0)
    .describe('Number of proxies in front whose X-Forwarded-For is trusted for the client address'),
  ...accepting,
  ...settings.publicUrl,
  SOURCE_IPS: sourceIps
    .optional()
    .describe(
      'Address ranges that deliveries come from, separated by commas; GET /api/v1/source-ips shows them',
    ),
  ...settings.memory('gateway'),
  ...quotas.shape,
  ...settings.concurrency,
  ...settings.egress,
  ...settings.process(9101),
});

export type GatewayConfig = z.infer<typeof gatewayConfig>;
