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
      description: 'What is sent, by the webhook as it is now; credentials are masked',
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

export function describeAttempt(source: Attempt, headers: Header[]): z.infer<typeof attempt> {
  const { id, trigger, statusCode, response } = source;
  return {
    ...{ id, processed: true, resend: trigger === 'resend', statusCode, response, headers },
    createdAt: isoTime(source.startedAtMs),
    updatedAt: isoTime(endedAtMs(source)),
  };
}

/** Every attempt with what became of it; `headers` are those that the webhook's deliveries have. */
export function describeDelivery(source: Delivery, headers: Header[]): z.infer<typeof delivery> {
  const { id, messageId, webhookId, status, reason, attempts, nextAttemptAtMs } = source;
  return {
    ...{ id, messageId, webhookId, status, reason },
    attemptCount: attempts.length,
    nextAttemptAt: nextAttemptAtMs === null ? null : isoTime(nextAttemptAtMs),
    attempts: attempts.map((each) => {
      const { number, outcome, durationMs, responseHeaders } = each;
      return { ...describeAttempt(each, headers), number, outcome, durationMs, responseHeaders };
    }),
    createdAt: isoTime(source.createdAtMs),
    updatedAt: isoTime(source.updatedAtMs),
  };
}
