import { DEFAULT_HEADERS } from '@posthorn/domain/request/delivery-headers.ts';
import {
  responseFields,
  type ResponseKind,
  responseShape,
  withoutSecrets,
} from '@posthorn/domain/webhook-fields.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { headerFields, heldField, idField, isoTime, timeField } from './fields.ts';
import { type Caller, seesSecrets } from '../keys/rights.ts';

/** A webhook as lists, updates and rotations return it. */
export const webhookSchema = schemaOf('list').meta({ id: 'Webhook' });

/** `authMethod`, `tls` and the counts are returned on create and get only (docs/contract.md C6.5, C6.17, C24.4, C29.10). */
export const webhookWithAuthSchema = schemaOf('single')
  .extend({
    waiting: z.int().meta({
      description:
        'Deliveries that wait because the webhook or its app is on hold, or are still to be released; counted up to 100,000',
    }),
    blockedKeys: z.int().meta({
      description: 'Ordering keys that are blocked by an exhausted delivery; counted up to 1,000',
    }),
  })
  .meta({ id: 'WebhookWithAuth' });

function schemaOf(kind: ResponseKind) {
  return z.object({
    id: idField('wh'),
    ...responseShape(kind),
    headers: headerFields.meta({ description: 'Headers that Posthorn adds' }),
    createdAt: timeField,
    updatedAt: timeField,
  });
}

/** A webhook in a response. Its fields are those of libs/domain/src/webhook-fields.ts. */
type WebhookResponse = Readonly<Record<string, unknown>>;

export const describeWebhook = (source: Webhook): WebhookResponse => describe(source, 'list');

export const describeWebhookWithAuth = (source: Webhook): WebhookResponse => ({
  ...describe(source, 'single'),
  waiting: 0,
  blockedKeys: 0,
});

function describe(source: Webhook, kind: ResponseKind): WebhookResponse {
  return {
    id: source.id,
    ...responseFields(source, kind),
    headers: DEFAULT_HEADERS,
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
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
    latencyMs: z.object({ p50: z.number().nullable(), p95: z.number().nullable() }).meta({
      id: 'HealthLatency',
      description: 'Duration of the examined attempts; null without attempts',
    }),
    concurrency: z.object({ now: z.int(), floor: z.int(), ceiling: z.int() }).meta({
      id: 'HealthConcurrency',
      description:
        'Attempts that may run at once. The limit grows while attempts wait and the endpoint responds well; it shrinks on 429, 503, timeouts and rising latency',
    }),
    ratePerSecond: z.number().nullable().meta({
      description:
        'Most attempts per second: the limit of the webhook, or the rate learned from its 429 responses. Null when there is no limit, and when nothing was sent in the last minutes',
    }),
    pausedUntil: timeField.nullable().meta({
      description:
        'Nothing is sent before this time: the endpoint asked for a pause with `Retry-After`. Null without a pause',
    }),
    held: heldField,
    backlog: z.int().meta({ description: 'Number of pending deliveries; counted up to 10,000' }),
  })
  .meta({ id: 'WebhookHealth' });
