import type { ResendDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const resend = z
  .object({
    id: idField('rsnd'),
    appId: idField('app').nullable().meta({ description: 'Null when it is not of an app' }),
    webhookId: idField('wh').nullable().meta({ description: 'Null when it is of an app' }),
    status: z.enum(['running', 'done']),
    total: z.int().meta({ description: 'Deliveries that are sent again' }),
    succeeded: z.int(),
    failed: z.int(),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Resend' });

export function describeResend(document: ResendDocument): z.infer<typeof resend> {
  const {
    _id,
    appId = null,
    webhookId,
    status,
    total,
    succeeded,
    failed,
    createdAt,
    updatedAt,
  } = document;
  return {
    id: _id,
    appId,
    webhookId,
    status,
    total,
    succeeded,
    failed,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
  };
}
