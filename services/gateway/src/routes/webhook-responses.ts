import { DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import {
  type AuthMethod,
  CLIENT_AUTHENTICATIONS,
  type EndpointTls,
  type Webhook,
} from '@posthorn/domain/webhook.ts';
import { pemCertificatesIn } from '@posthorn/platform/security/secure-context.ts';
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { headerFields, idField, isoTime, timeField } from './fields.ts';
import { type Caller, seesSecrets } from '../keys/rights.ts';
import { MASK, maskCredential } from '../history/sent-headers.ts';

const certificates = z.array(
  z.object({
    subject: z.string().meta({ example: 'CN=posthorn, O=Example' }),
    issuer: z.string(),
    fingerprint256: z.string().meta({ description: 'SHA-256 of the certificate' }),
    notBefore: timeField,
    notAfter: timeField,
  }),
);

/** Shows certificates, which any endpoint may see, and no key. */
const endpointTlsSchema = z
  .object({ certificate: certificates, ca: certificates })
  .meta({ id: 'ShownTls', description: 'Present when the webhook has TLS settings of its own' });

function describeEndpointTls({ client, ca }: EndpointTls): z.infer<typeof endpointTlsSchema> {
  return {
    certificate: client ? describeCertificates(client.certificate) : [],
    ca: ca === null ? [] : describeCertificates(ca),
  };
}

function describeCertificates(pem: string): z.infer<typeof certificates> {
  return pemCertificatesIn(pem).map((text) => {
    const { subject, issuer, fingerprint256, validFromDate, validToDate } = new X509Certificate(
      text,
    );
    return {
      subject: onOneLine(subject),
      issuer: onOneLine(issuer),
      fingerprint256,
      notBefore: isoTime(validFromDate.getTime()),
      notAfter: isoTime(validToDate.getTime()),
    };
  });
}

/** Node returns each part of a name on a line of its own, and nothing for an empty name. */
function onOneLine(name: string | undefined): string {
  return (name ?? '').replaceAll('\n', ', ');
}

const authMethod = z
  .discriminatedUnion('method', [
    z.object({
      method: z.literal('hmac'),
      hmacHeader: z.string(),
      hmacSecret: z.string(),
      signatureAlgorithm: z.literal('ed25519').optional().meta({
        description:
          'Present when the key of the company signs. `hmacHeader` and `hmacSecret` are not used then',
      }),
    }),
    z.object({ method: z.literal('api_key'), apiKey: z.string(), apiKeyHeader: z.string() }),
    z.object({ method: z.literal('basic'), username: z.string(), password: z.string() }),
    z.object({
      method: z.literal('oauth2'),
      tokenUrl: z.string(),
      clientId: z.string(),
      clientSecret: z.string(),
      scope: z.string().nullable(),
      audience: z.string().nullable(),
      clientAuthentication: z.enum(CLIENT_AUTHENTICATIONS),
    }),
  ])
  .meta({ id: 'AuthMethod', description: 'How deliveries authenticate to the endpoint' });

/** A webhook as lists, updates and rotations return it. */
export const webhookSchema = z
  .object({
    id: idField('wh'),
    name: z.string(),
    url: z.string(),
    secret: z
      .string()
      .meta({ description: 'Verifies deliveries: `whsec_` and the base64 of 32 random bytes' }),
    customHeaders: headerFields,
    headers: headerFields.meta({ description: 'Headers that Posthorn adds' }),
    eventTypes: z.array(z.string()).meta({
      description: 'Event types that are delivered. An empty list selects all messages of the app',
    }),
    disabled: z.boolean(),
    rateLimitPerSecond: z
      .int()
      .nullable()
      .meta({ description: 'Most attempts per second; null for no limit' }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Webhook' });

/** `authMethod` and `tls` are returned on create and get only (docs/contract.md C6.5, C6.17). */
export const webhookWithAuthSchema = z
  .object({ ...webhookSchema.shape, authMethod, tls: endpointTlsSchema.optional() })
  .meta({ id: 'WebhookWithAuth' });

export function describeWebhook(source: Webhook): z.infer<typeof webhookSchema> {
  const { id, name, url, secret, customHeaders, eventTypes, disabled, rateLimitPerSecond } = source;
  return {
    id,
    name,
    url,
    secret,
    customHeaders,
    headers: [...DEFAULT_HEADERS],
    eventTypes,
    disabled,
    rateLimitPerSecond,
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
  };
}

export function describeWebhookWithAuth(source: Webhook): z.infer<typeof webhookWithAuthSchema> {
  const { authMethod, tls } = source;
  return { ...describeWebhook(source), authMethod, ...(tls && { tls: describeEndpointTls(tls) }) };
}

/** Returns the webhook with everything masked that signs or authenticates its deliveries. */
function withoutSecrets(source: Webhook): Webhook {
  return {
    ...source,
    secret: MASK,
    previousSecret: null,
    customHeaders: source.customHeaders.map(maskCredential),
    authMethod: maskedAuth(source.authMethod),
  };
}

/** Returns the function that describes webhooks to the caller: masked unless it may see secrets, and asks for them. */
export function shownTo<Shown>(
  caller: Caller,
  describe: (webhook: Webhook) => Shown,
  asksForSecrets = true,
): (webhook: Webhook) => Shown {
  const isShown = asksForSecrets && seesSecrets(caller);
  return isShown ? describe : (webhook) => describe(withoutSecrets(webhook));
}

function maskedAuth(auth: AuthMethod): AuthMethod {
  switch (auth.method) {
    case 'hmac':
      return { ...auth, hmacSecret: MASK };
    case 'basic':
      return { ...auth, password: MASK };
    case 'api_key':
      return { ...auth, apiKey: MASK };
    case 'oauth2':
      return { ...auth, clientSecret: MASK };
  }
}

export const healthSchema = z
  .object({
    circuit: z.enum(['closed', 'open', 'half_open']).meta({
      description:
        '`open`: attempts kept failing, and further ones are deferred. `half_open`: one attempt finds out whether the endpoint has recovered',
    }),
    probeAt: timeField.nullable().meta({
      description:
        'When the next attempt finds out whether the endpoint has recovered; null while the circuit is closed',
    }),
    lastAttemptAt: timeField.nullable().meta({
      description: 'When the newest of the examined attempts began; null without attempts',
    }),
    successRate: z.number().min(0).max(1).nullable().meta({
      description: 'Share of the examined attempts that succeeded; null without attempts',
    }),
    latencyMs: z
      .object({ p50: z.number().nullable(), p95: z.number().nullable() })
      .meta({ description: 'Duration of the examined attempts; null without attempts' }),
    concurrency: z.object({ now: z.int(), floor: z.int(), ceiling: z.int() }).meta({
      description:
        'Attempts that may run at once. The limit grows while attempts wait and the endpoint responds well; it shrinks on 429, 503, timeouts and rising latency',
    }),
    ratePerSecond: z.number().nullable().meta({
      description:
        'Most attempts per second: the limit of the webhook, or the rate learned from its 429 responses. Null when there is no limit, and when nothing was sent in the last minutes',
    }),
    heldUntil: timeField.nullable().meta({
      description:
        'Nothing is sent before this time: the endpoint asked for a pause with `Retry-After`. Null without a pause',
    }),
    backlog: z.int().meta({ description: 'Number of pending deliveries; counted up to 10,000' }),
  })
  .meta({ id: 'WebhookHealth' });
