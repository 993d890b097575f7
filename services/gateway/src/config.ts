import { parseCidr } from '@posthorn/domain/egress.ts';
import { flag } from '@posthorn/platform/service/store-settings.ts';
import { httpUrl, settings, wholeNumber } from '@posthorn/platform/service/settings.ts';
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
  QUOTA_EVENT_TYPES_PER_PROJECT: wholeNumber(1, 100_000)
    .default(2_000)
    .describe('Event types in the catalogue of one project'),
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

const SESSION_LENGTH = /^(?<count>\d{1,4})(?<unit>[mh])$/;
const MINUTE_MS = 60_000;
const LEAST_SESSION_MS = 15 * MINUTE_MS;
const LONGEST_SESSION_MS = 24 * 60 * MINUTE_MS;

/** In milliseconds. */
const sessionLength = z
  .string()
  .transform((text) => {
    const { count = '0', unit } = SESSION_LENGTH.exec(text)?.groups ?? {};
    return Number(count) * (unit === 'h' ? 60 : 1) * MINUTE_MS;
  })
  .refine((ms) => ms >= LEAST_SESSION_MS && ms <= LONGEST_SESSION_MS, {
    message: 'must be 15m to 24h, a number with m or h',
  });

const isLoopback = (url: URL): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);

/** OpenID Connect Discovery 1.0, 3: an issuer has neither query nor fragment. */
const issuer = httpUrl
  .refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')
  .refine((text) => {
    const url = new URL(text);
    return url.protocol === 'https:' || isLoopback(url);
  }, 'must be https, or http on this machine');

/** How people sign in (docs/people.md). Without OIDC_ISSUER they do not. */
const people = z.object({
  OIDC_ISSUER: issuer
    .optional()
    .describe(
      'OpenID Connect issuer at which people sign in to the dashboard, such as https://login.example.com; without it they do so with API keys and links only',
    ),
  OIDC_CLIENT_ID: z.string().max(255).optional().describe('Client id at OIDC_ISSUER'),
  OIDC_CLIENT_SECRET: z
    .string()
    .max(2_048)
    .optional()
    .describe('Client secret at OIDC_ISSUER; without it, a public client'),
  OIDC_SCOPES: z
    .string()
    .regex(/^openid( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'must be openid, and others after spaces')
    .max(1_000)
    .default('openid profile email')
    .describe('Scopes that a sign-in asks OIDC_ISSUER for'),
  OIDC_GROUPS_CLAIM: z
    .string()
    .max(200)
    .default('groups')
    .describe("Claim with a person's groups: its name, or a path such as realm_access.roles"),
  OIDC_SESSION: sessionLength
    .prefault('8h')
    .describe('How long a person stays signed in, 15m to 24h'),
  OIDC_ONLY: flag
    .prefault('false')
    .describe('Refuse to sign in to the dashboard with an API key; one-time links still do'),
});

type PeopleConfig = z.infer<typeof people> & { PUBLIC_URL?: string | undefined };

/** People who sign in come back to PUBLIC_URL, as a client that the issuer knows. */
function refineSignIn(config: PeopleConfig, context: z.RefinementCtx<PeopleConfig>): void {
  if (config.OIDC_ISSUER === undefined) {
    if (!config.OIDC_ONLY) return;
    context.addIssue({ code: 'custom', path: ['OIDC_ONLY'], message: 'needs OIDC_ISSUER' });
    return;
  }
  for (const name of ['PUBLIC_URL', 'OIDC_CLIENT_ID'] as const) {
    if (config[name] !== undefined) continue;
    context.addIssue({ code: 'custom', path: [name], message: 'is required with OIDC_ISSUER' });
  }
}

const gatewaySettings = z.object({
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
  ...people.shape,
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

export const gatewayConfig = gatewaySettings.superRefine(refineSignIn);

export type GatewayConfig = z.infer<typeof gatewayConfig>;

/** How people sign in at the issuer. */
export interface SignInConfig {
  issuer: string;
  clientId: string;
  /** Undefined for a public client. */
  clientSecret: string | undefined;
  scopes: string;
  groupsClaim: string;
  sessionMs: number;
  /** API keys sign in to no dashboard. */
  isOnly: boolean;
  /** PUBLIC_URL. */
  publicUrl: string;
}

/** Returns null when people sign in with keys and links only. */
export function signInConfigOf(config: PeopleConfig): SignInConfig | null {
  const { OIDC_ISSUER: issuerUrl, OIDC_CLIENT_ID: clientId, PUBLIC_URL: publicUrl } = config;
  if (issuerUrl === undefined || clientId === undefined || publicUrl === undefined) return null;
  return {
    issuer: issuerUrl,
    clientId,
    clientSecret: config.OIDC_CLIENT_SECRET,
    scopes: config.OIDC_SCOPES,
    groupsClaim: config.OIDC_GROUPS_CLAIM,
    sessionMs: config.OIDC_SESSION,
    isOnly: config.OIDC_ONLY,
    publicUrl,
  };
}
