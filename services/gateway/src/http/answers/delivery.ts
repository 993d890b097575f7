import {
  CANCEL_REASONS,
  endedAtMs,
  type Attempt,
  type Delivery,
} from '@posthorn/domain/delivery.ts';
import { OUTCOMES } from '@posthorn/domain/outcome.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { headerFields, idField, isoTime, timeField } from './fields.ts';

export const deliveryStatus = z
  .enum(['pending', 'delivered', 'exhausted', 'cancelled'])
  .meta({ id: 'DeliveryStatus' });

/** The fields of an attempt that the contract names (spec, Webhook message). */
export const attempt = z
  .object({
    id: idField('att'),
    processed: z.boolean().meta({ description: 'False until the attempt was made' }),
    resend: z.boolean(),
    statusCode: z.int().nullable().meta({ description: 'Null when no status arrived in time' }),
    response: z.string().nullable().meta({ description: 'The first 4 KiB of the answer' }),
    headers: headerFields.meta({
      description:
        'What is sent, credentials masked; empty when the webhook was changed or deleted since',
    }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Attempt' });

export const delivery = z
  .object({
    id: idField('dlv'),
    messageId: idField('msg'),
    webhookId: idField('wh'),
    status: deliveryStatus,
    reason: z.enum(CANCEL_REASONS).nullable().meta({ description: 'Why it was cancelled' }),
    attemptCount: z.int(),
    nextAttemptAt: timeField.nullable(),
    attempts: z.array(
      z.object({
        ...attempt.shape,
        number: z.int().min(1),
        outcome: z.enum(OUTCOMES),
        durationMs: z.int(),
        responseHeaders: headerFields,
      }),
    ),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Delivery' });

/** The headers that a webhook's deliveries have, and since when. */
export interface Sendable {
  headers: Header[];
  /** Milliseconds since 1970: before, the webhook was another one. */
  sinceMs: number;
}

/** Of an attempt that was made before the webhook was changed no headers are shown rather than wrong ones. */
export function describeAttempt(source: Attempt, sendable: Sendable): z.infer<typeof attempt> {
  const { id, trigger, statusCode, response } = source;
  const headers = source.startedAtMs >= sendable.sinceMs ? sendable.headers : [];
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

/** Every attempt with what became of it. */
export function describeDelivery(source: Delivery, sendable: Sendable): z.infer<typeof delivery> {
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
      const { number, outcome, durationMs, responseHeaders } = each;
      return { ...describeAttempt(each, sendable), number, outcome, durationMs, responseHeaders };
    }),
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
  };
}
