import { DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import { CLIENT_AUTHENTICATIONS, type AuthMethod, type Webhook } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { describeEndpointTls, endpointTlsSchema } from './endpoint-tls.ts';
import { headerFields, idField, isoTime, timeField } from './fields.ts';
import { MASK, maskCredential } from './sent-headers.ts';

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
export function withoutSecrets(source: Webhook): Webhook {
  return {
    ...source,
    secret: MASK,
    previousSecret: null,
    customHeaders: source.customHeaders.map(maskCredential),
    authMethod: maskedAuth(source.authMethod),
  };
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
