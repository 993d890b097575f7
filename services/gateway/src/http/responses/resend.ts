import type { Resend } from '@posthorn/domain/resend.ts';
import { OUTCOMES } from '@posthorn/domain/outcome.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const resendSchema = z
  .object({
    id: idField('rsnd'),
    appId: idField('app').nullable().meta({
      description:
        'The app whose failed deliveries are resent; null for a resend of one webhook or delivery',
    }),
    webhookId: idField('wh').nullable().meta({
      description: 'The webhook whose deliveries are resent; null for a resend of an app',
    }),
    outcome: z.enum(OUTCOMES).nullable().meta({
      description:
        'Only deliveries whose last attempt ended with it are resent; null for all that failed',
    }),
    status: z.enum(['running', 'done', 'aborted']),
    abortAskedAt: timeField.nullable().meta({
      description: 'When a client asked to abort it; null when nobody has',
    }),
    total: z.int().meta({
      description:
        'Number of deliveries to send again, counted up to 100,000 until it is `done`. With an `outcome`, all that failed while it is `running`',
    }),
    succeeded: z.int(),
    failed: z.int(),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Resend' });

export function describeResend(resend: Resend): z.infer<typeof resendSchema> {
  const { id, appId, webhookId, outcome, status, abortAskedAtMs, total, succeeded, failed } =
    resend;
  return {
    id,
    appId,
    webhookId,
    outcome,
    status,
    abortAskedAt: abortAskedAtMs === null ? null : isoTime(abortAskedAtMs),
    total: Math.max(total, succeeded + failed),
    succeeded,
    failed,
    createdAt: isoTime(resend.createdAtMs),
    updatedAt: isoTime(resend.updatedAtMs),
  };
}
