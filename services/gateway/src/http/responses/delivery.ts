import {
  CANCEL_REASONS,
  endedAtMs,
  type Attempt,
  type Delivery,
} from '@posthorn/domain/message/delivery.ts';
import { OUTCOMES } from '@posthorn/domain/outcome.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { headerFields, idField, isoTime, timeField } from './fields.ts';

export const deliveryStatusSchema = z
  .enum(['pending', 'delivered', 'exhausted', 'cancelled'])
  .meta({ id: 'DeliveryStatus' });

/** The fields of an attempt that the contract names (docs/contract.md C7.8). */
export const attemptSchema = z
  .object({
    id: idField('att'),
    processed: z.boolean().meta({ description: 'False until the attempt is made' }),
    resend: z.boolean(),
    statusCode: z
      .int()
      .nullable()
      .meta({ description: 'Status of the endpoint; null when none arrived in time' }),
    response: z.string().nullable().meta({ description: 'The first 4 KiB of the response body' }),
    headers: headerFields.meta({
      description:
        'Headers that are sent, with credentials masked. Empty when the webhook was changed or deleted since',
    }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Attempt' });

export const deliverySchema = z
  .object({
    id: idField('dlv'),
    messageId: idField('msg'),
    webhookId: idField('wh'),
    status: deliveryStatusSchema,
    reason: z
      .enum(CANCEL_REASONS)
      .nullable()
      .meta({ description: 'Why the delivery was cancelled; null otherwise' }),
    attemptCount: z.int(),
    nextAttemptAt: timeField.nullable(),
    attempts: z.array(
      z.object({
        ...attemptSchema.shape,
        number: z.int().min(1),
        outcome: z.enum(OUTCOMES),
        failureReason: z
          .string()
          .nullable()
          .meta({ description: 'Why there was no access token, with `token_failed`; else null' }),
        durationMs: z.int(),
        responseHeaders: headerFields,
      }),
    ),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Delivery' });

/** The headers of the deliveries to a webhook, with credentials masked. */
export interface SentHeaders {
  headers: Header[];
  /** Milliseconds since 1970. Attempts before this time may have had other headers. */
  sinceMs: number;
}

/** Shows no headers for an attempt that is older than the last change of the webhook: they may have been others. */
export function describeAttempt(
  source: Attempt,
  sentHeaders: SentHeaders,
): z.infer<typeof attemptSchema> {
  const { id, trigger, statusCode, response } = source;
  const headers = source.startedAtMs >= sentHeaders.sinceMs ? sentHeaders.headers : [];
  return {
    id,
    processed: true,
    resend: trigger === 'resend',
    statusCode,
    response,
    headers,
    createdAt: isoTime(source.startedAtMs),
    updatedAt: isoTime(endedAtMs(source)),
  };
}

export function describeDelivery(
  source: Delivery,
  sentHeaders: SentHeaders,
): z.infer<typeof deliverySchema> {
  const { id, messageId, webhookId, status, reason, attemptCount, attempts } = source;
  return {
    id,
    messageId,
    webhookId,
    status,
    reason,
    attemptCount,
    nextAttemptAt: source.nextAttemptAtMs === null ? null : isoTime(source.nextAttemptAtMs),
    attempts: attempts.map((each) => {
      const { number, outcome, failureReason = null, durationMs, responseHeaders } = each;
      return {
        ...describeAttempt(each, sentHeaders),
        number,
        outcome,
        failureReason,
        durationMs,
        responseHeaders,
      };
    }),
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
  };
}
