import type { ResendDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const resend = z
  .object({
    id: idField('rsnd'),
    webhookId: idField('wh'),
    status: z.enum(['running', 'done']),
    total: z.int().meta({ description: 'Deliveries that are sent again' }),
    succeeded: z.int(),
    failed: z.int(),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Resend' });

export function describeResend(document: ResendDocument): z.infer<typeof resend> {
  const { _id, webhookId, status, total, succeeded, failed, createdAt, updatedAt } = document;
  return {
    ...{ id: _id, webhookId, status, total, succeeded, failed },
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
  };
}
