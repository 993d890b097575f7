import { type MemoryOwner, defaultMemoryMib } from '../memory/memory-shares.ts';
import {
  DEFAULT_DEFERRAL_DELAYS,
  DEFAULT_RETRY_DELAYS,
  deferralDelaysSchema,
  retryScheduleSchema,
} from '@posthorn/domain/delivery/schedule.ts';
import { parseCidr } from '@posthorn/domain/egress.ts';
import { foreignClusters, ingestSources } from '@posthorn/domain/ingest.ts';
import { z } from 'zod';
import { keyRingSchema } from '../security/vault.ts';
import {
  flag,
  kafkaAccess,
  mongodbAccess,
  plaintextStores,
  redisAccess,
} from './store-settings.ts';

/**
 * Returns the schema of a setting that is a whole number from `from` to `to`. `what` names it in the error, with
 * its unit: 'milliseconds', 'a port'.
 */
export function wholeNumber(from: number, to: number, what = 'a whole number') {
  const limits = to === Infinity ? `from ${from}` : `from ${from} to ${to}`;
  const message = `must be ${what} ${limits}`;
  return z.coerce.number(message).int(message).min(from, message).max(to, message);
}

/**
 * An http or https URL of a setting. One with a user and a password is refused: `fetch` does not take it, and
 * the error that it throws would put the password into the log. The exporter of traces would not send them.
 */
export const httpUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .refine((text) => !hasCredentials(text), 'must not have a user or a password');

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.username !== '' || url.password !== '');
}

const message =
  'must be an http or https URL without user, query and fragment, such as https://hooks.example.com/posthorn';

/** Without a slash at its end. */
const publicUrl = z
  .url({ protocol: /^https?$/, error: message })
  .refine((text) => !/[?#@]/.test(text), message)
  .transform((text) => text.replace(/\/+$/, ''));

const publicUrlSettings = {
  PUBLIC_URL: publicUrl
    .optional()
    .describe(
      'Where browsers reach the gateway, with the path prefix of a proxy in front, such as https://hooks.example.com/posthorn; for links, cookies of the dashboard and operator events in chats',
    ),
};

/** The samplers of the OpenTelemetry specification that need no other service. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** With the names of the OpenTelemetry specification. docs/tracing.md lists further ones that its exporter reads itself. */
const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl
    .optional()
    .describe('OTLP/HTTP collector of traces, without `/v1/traces`; no traces when not set'),
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`)
    .default('parentbased_always_on')
    .describe(
      'Which messages are traced; with `parentbased_…` those whose `traceparent` says so, and the rest of the name for those without one',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number('must be a share from 0 to 1')
    .min(0, 'must be a share from 0 to 1')
    .max(1, 'must be a share from 0 to 1')
    .default(1)
    .describe('Share of traces for `traceidratio`'),
};

export type TracingSettings = z.infer<z.ZodObject<typeof tracingSettings>>;

const port = wholeNumber(0, 65_535, 'a port');

const places = wholeNumber(1, 1_000);

const cidrList = z
  .string()
  .transform((text) => text.split(',').map(parseCidr))
  .refine((ranges) => ranges.every((range) => range !== null), {
    message: 'must be address ranges such as 10.20.0.0/16, separated by commas',
  })
  .transform((ranges) => ranges.filter((range) => range !== null));

const portsMessage = 'must be ports from 1 to 65535, separated by commas';
const portList = z
  .string()
  .regex(/^\s*\d{1,5}(\s*,\s*\d{1,5})*\s*$/, portsMessage)
  .transform((text) => text.split(',').map(Number))
  .refine((ports) => ports.every((each) => each >= 1 && each <= 65_535), { message: portsMessage });

const HOST_OR_SUFFIX = /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;
const hostList = z
  .string()
  .transform((text) => text.split(',').map((host) => host.trim().toLowerCase()))
  .refine((hosts) => hosts.every((host) => HOST_OR_SUFFIX.test(host)), {
    message: 'must be host names such as api.example.com or *.example.com, separated by commas',
  });

/** Settings that several services share, in one place, so that a name means the same everywhere. */
export const settings = {
  tracing: tracingSettings,
  kafka: {
    ...kafkaAccess,
    ...plaintextStores,
    TOPIC_PREFIX: z
      .string()
      .regex(/^[A-Za-z0-9._-]{0,60}$/, 'must be at most 60 letters, digits, dots, _ or -')
      .default('posthorn.')
      .describe('Prefix of every topic and consumer group name'),
    RETRY_DELAYS: retryScheduleSchema
      .prefault(DEFAULT_RETRY_DELAYS)
      .describe('Waits between attempts, from the end of the failed one'),
    DEFERRAL_DELAYS: deferralDelaysSchema
      .prefault(DEFAULT_DEFERRAL_DELAYS)
      .describe(
        'Waits of attempts that an endpoint cannot take now: rate limit, open circuit, Retry-After, backlog; rising, the last one 1m or longer',
      ),
  },
  topics: {
    TOPIC_PARTITIONS: wholeNumber(1, 1_000).default(12).describe('Partitions of each topic'),
    TOPIC_REPLICATION: wholeNumber(1, 7)
      .default(3)
      .describe('Copies of each topic; with 2 or more, writes wait for all but one of them'),
  },
  ingest: {
    INGEST_SOURCES: ingestSources
      .optional()
      .describe(
        'Topics whose records are accepted as messages, as a JSON array of sources (docs/ingest.md); without it, none',
      ),
    INGEST_CLUSTERS: foreignClusters
      .optional()
      .describe(
        'How clusters of sources other than that of KAFKA_BROKERS are reached, as a JSON array with their logins (docs/ingest.md); a secret',
      ),
    INGEST_COMPANY_TOPICS: flag
      .prefault('false')
      .describe(
        'Accept the records of each topic named TOPIC_PREFIX, `ingest.` and the id of a company as its messages',
      ),
  },
  publicUrl: publicUrlSettings,
  mongodb: {
    ...mongodbAccess,
    ...plaintextStores,
  },
  retention: {
    RETENTION_DAYS: z.coerce
      .number()
      .min(1, 'must be from 1 to 3650')
      .max(3_650, 'must be from 1 to 3650')
      .default(30)
      .describe('How long messages, deliveries and attempts are kept'),
    AUDIT_RETENTION_DAYS: z.coerce
      .number()
      .min(1, 'must be from 1 to 3650')
      .max(3_650, 'must be from 1 to 3650')
      .default(400)
      .describe('How long audit events are kept; 400 days are a year and the time to audit it'),
    MONGODB_SHARDED: flag.prefault('false').describe('Spread each new day over the shards'),
  },
  redis: {
    ...redisAccess,
    REDIS_PREFIX: z
      .string()
      .regex(/^[A-Za-z0-9:._-]{0,60}$/, 'must be at most 60 letters, digits, : . _ or -')
      .default('posthorn:')
      .describe('Prefix of every Redis channel and key'),
  },
  encryption: {
    ENCRYPTION_KEYS: keyRingSchema.describe(
      'Keys of stored webhook secrets and of the MACs of records, keyId:base64 of 32 bytes, separated by commas; the first one encrypts',
    ),
  },
  egress: {
    EGRESS_ALLOW_LOOPBACK: flag.prefault('false').describe('Deliveries may go to this machine'),
    EGRESS_ALLOW_HTTP: flag.prefault('false').describe('Deliveries may go over plain http'),
    EGRESS_ALLOW_CIDRS: cidrList
      .optional()
      .describe('Private ranges that deliveries may go to, separated by commas'),
    EGRESS_ALLOW_PORTS: portList
      .optional()
      .describe(
        'The only ports that deliveries may go to, separated by commas; without it, all but those of infrastructure',
      ),
    EGRESS_DENY_CIDRS: cidrList
      .optional()
      .describe(
        'Ranges that deliveries may never go to, such as your own public addresses; they win over what is allowed',
      ),
    EGRESS_DENY_HOSTS: hostList
      .optional()
      .describe(
        'Host names that deliveries may never go to, such as that of this API; *.example.com stands for all names under it',
      ),
  },
  process: (defaultOpsPort: number) => ({
    OPS_HOST: z.string().default('127.0.0.1').describe('Address of the management port'),
    OPS_PORT: port.default(defaultOpsPort).describe('Management port: metrics, livez, readyz'),
    LOG_LEVEL: z
      .enum(
        ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
        'must be fatal, error, warn, info, debug, trace or silent',
      )
      .default('info')
      .describe('Least important level that is logged'),
    DRAIN_TIMEOUT_MS: wholeNumber(0, 600_000, 'milliseconds')
      .default(25_000)
      .describe('How long a stop waits for running work'),
  }),
  /** The smallest value has room for one request or record of the largest kind in each part. */
  memory: (owner: MemoryOwner) => ({
    MEMORY_MIB: wholeNumber(owner === 'retry' ? 12 : 64, 16_384)
      .default(defaultMemoryMib(owner))
      .describe(
        'Memory for queues, caches and what is under way, in MiB; about 130 MiB for the process itself come on top',
      ),
  }),
  /** How many attempts one webhook may have at once: the dispatcher enforces it, the gateway shows it. */
  concurrency: {
    ENDPOINT_CONCURRENCY: places
      .default(16)
      .describe('Concurrent attempts to a webhook about which nothing is known yet'),
    ENDPOINT_CONCURRENCY_MAX: places
      .default(1_000)
      .describe('Most concurrent attempts to a webhook that responds well'),
  },
  port,
};
