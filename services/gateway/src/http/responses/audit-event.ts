import {
  AUDIT_ACTIONS,
  AUDIT_OUTCOMES,
  AUDIT_TARGETS,
  type AuditEvent,
} from '@posthorn/domain/audit/audit-event.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

const value = z
  .union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()])
  .meta({ id: 'AuditValue', description: 'Null for a field without a value', example: 'Orders' });

const change = z
  .object({ field: z.string().meta({ example: 'name' }), before: value, after: value })
  .meta({ id: 'AuditChange' });

const actor = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('apiKey'), keyId: idField('key') }),
  z.object({ kind: z.literal('portalLink'), linkId: idField('plnk') }),
  z.object({ kind: z.enum(['admin', 'system']) }),
]);

const target = z.object({
  kind: z.enum(AUDIT_TARGETS).meta({ example: 'webhook' }),
  id: z
    .string()
    .nullable()
    .meta({ description: 'Null for several at once, and for one that was not created' }),
});

export const auditEventSchema = z
  .object({
    id: idField('aud'),
    action: z.enum(AUDIT_ACTIONS).meta({ example: 'webhook.updated' }),
    actor: actor.meta({
      id: 'AuditActor',
      description:
        'Who did it: an API key, a visitor of the portal, an operator (`admin`), or Posthorn itself (`system`)',
    }),
    target: target.meta({ id: 'AuditTarget' }),
    clientAddress: z.string().nullable().meta({
      description: 'IP address of the client; null for an operator and for Posthorn',
      example: '192.0.2.7',
    }),
    requestId: z.string().nullable().meta({
      description: '`X-Request-Id` of the request; null for an operator and for Posthorn',
    }),
    outcome: z.enum(AUDIT_OUTCOMES).meta({
      description:
        '`failed`: the request was refused, and nothing was changed. `started`: the request still runs, or its process ended, or the store did not confirm a write; the change may have been made',
      example: 'done',
    }),
    code: z
      .string()
      .nullable()
      .meta({ description: 'Error code of the response; null unless `failed`', example: null }),
    changes: z.array(change).meta({
      description:
        'The fields that were changed; what was asked for until the event is `done`. `********` stands for a value that the log does not hold',
    }),
    count: z.int().nullable().meta({
      description: 'How many webhooks were shown; null unless secrets were read',
      example: null,
    }),
    createdAt: timeField,
    completedAt: timeField.nullable().meta({ description: 'Null while `started`' }),
  })
  .meta({ id: 'AuditEvent' });

export function describeAuditEvent(event: AuditEvent): z.infer<typeof auditEventSchema> {
  const { id, action, actor, target, clientAddress, requestId } = event;
  const { outcome, code, changes, count, createdAtMs, completedAtMs } = event;
  return {
    id,
    action,
    actor,
    target,
    clientAddress,
    requestId,
    outcome,
    code,
    changes,
    count,
    createdAt: isoTime(createdAtMs),
    completedAt: completedAtMs === null ? null : isoTime(completedAtMs),
  };
}
