import {
  AUDIT_ACTIONS,
  AUDIT_OUTCOMES,
  AUDIT_TARGETS,
  type AuditEvent,
} from '@posthorn/domain/audit.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import { cursor, exampleId, idField, isoTime, limit, text, timeField, timeText } from './fields.ts';

const value = z
  .union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()])
  .meta({ id: 'AuditValue', description: 'Null for a field without a value', example: 'Orders' });

const change = z
  .object({ field: z.string().meta({ example: 'name' }), before: value, after: value })
  .meta({ id: 'AuditChange' });

const actor = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('apiKey'), keyId: idField('key') }).meta({ id: 'ApiKeyActor' }),
  z
    .object({ kind: z.literal('portalLink'), linkId: idField('plnk') })
    .meta({ id: 'PortalLinkActor' }),
  z
    .object({
      kind: z.literal('person'),
      personId: idField('usr'),
      name: z.string().nullable().meta({ description: 'As it was then', example: 'Ada' }),
    })
    .meta({ id: 'PersonActor' }),
  z.object({ kind: z.enum(['admin', 'system']) }).meta({ id: 'ActorWithoutId' }),
]);

const target = z.object({
  kind: z.enum(AUDIT_TARGETS).meta({ example: 'webhook' }),
  id: z
    .string()
    .nullable()
    .meta({ description: 'Null for several at once, and for one that was not created' }),
});

const auditEventSchema = z
  .object({
    id: idField('aud'),
    action: z.enum(AUDIT_ACTIONS).meta({ example: 'webhook.updated' }),
    actor: actor.meta({
      id: 'AuditActor',
      description:
        'Who did it: an API key, a visitor of the portal, a person who signed in, an operator (`admin`), or Posthorn itself (`system`)',
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

function describeAuditEvent(event: AuditEvent): z.infer<typeof auditEventSchema> {
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

const listQuery = z.object({
  action: z.enum(AUDIT_ACTIONS, `must be one of ${AUDIT_ACTIONS.join(', ')}`).optional(),
  actor: text(1, 128)
    .optional()
    .meta({
      description:
        'Id of the API key or of the person that did it, `admin` for operators, or `system` for Posthorn itself',
      example: exampleId('key'),
    }),
  targetId: text(1, 128)
    .optional()
    .meta({ description: 'Id of what it was done to', example: exampleId('wh') }),
  since: timeText.optional().meta({ description: 'Recorded at this time or later' }),
  until: timeText.optional().meta({ description: 'Recorded at this time or earlier' }),
  limit: limit(100, 50),
  cursor: cursor('aud').optional(),
});

/** As of messages: what a page may hold in memory. */
const MAX_PAGE_CHARS = 1_048_576;

/** See docs/contract.md C17. */
export function auditEventRoutes({ auditEvents }: Gateway): Route[] {
  return [
    route({
      operationId: 'listAuditEvents',
      method: 'get',
      path: '/audit-events',
      versionedOnly: true,
      scope: 'admin',
      isForCompanyOnly: true,
      tag: 'Audit log',
      summary: 'List audit events, newest first',
      description:
        'Every change of API keys, projects, apps and webhooks, every resend and test message, every read that showed secrets, and what operators did for your company. A page ends after 1 MB of changes, so it may hold fewer entries than `limit`, although `nextCursor` is not null.',
      query: listQuery,
      response: {
        status: 200,
        message: 'Audit events found',
        hasCursor: true,
        data: z.array(auditEventSchema),
      },
      async handle({ caller: { companyId }, query }) {
        const { since, until, ...filter } = query;
        const { events, nextCursor } = await auditEvents.list(companyId, {
          ...filter,
          fromMs: since === undefined ? undefined : Date.parse(since),
          toMs: until === undefined ? undefined : Date.parse(until),
          maxChars: MAX_PAGE_CHARS,
        });
        return { data: events.map(describeAuditEvent), nextCursor };
      },
    }),
  ];
}
