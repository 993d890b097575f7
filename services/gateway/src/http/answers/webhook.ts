import { DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { headerFields, idField, isoTime, timeField } from './fields.ts';

const authMethod = z
  .discriminatedUnion('method', [
    z.object({ method: z.literal('hmac'), hmacHeader: z.string(), hmacSecret: z.string() }),
    z.object({ method: z.literal('api_key'), apiKey: z.string(), apiKeyHeader: z.string() }),
    z.object({ method: z.literal('basic'), username: z.string(), password: z.string() }),
  ])
  .meta({ id: 'AuthMethod', description: 'How deliveries prove themselves to the endpoint' });

/** As lists, updates and rotations answer it. */
export const webhook = z
  .object({
    id: idField('wh'),
    name: z.string(),
    url: z.string(),
    secret: z
      .string()
      .meta({ description: 'Verifies deliveries; `whsec_` and base64 of 32 bytes' }),
    customHeaders: headerFields,
    headers: headerFields.meta({ description: 'Headers that the service adds by itself' }),
    eventTypes: z.array(z.string()).meta({ description: 'Empty: all messages to the app' }),
    disabled: z.boolean(),
    rateLimitPerSecond: z.int().nullable().meta({ description: 'Null: no limit of its own' }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Webhook' });

/** The contract returns `authMethod` on create and get only. */
export const webhookWithAuth = z
  .object({ ...webhook.shape, authMethod })
  .meta({ id: 'WebhookWithAuth' });

export function describeWebhook(source: Webhook): z.infer<typeof webhook> {
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

export function describeWebhookWithAuth(source: Webhook): z.infer<typeof webhookWithAuth> {
  return { ...describeWebhook(source), authMethod: source.authMethod };
}
