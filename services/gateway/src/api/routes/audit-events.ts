import { AUDIT_ACTIONS } from '@posthorn/domain/audit/audit-event.ts';
import type { AuditStore } from '@posthorn/platform/mongo/audit/audit-events.ts';
import { z } from 'zod';
import { auditEventSchema, describeAuditEvent } from '../../http/responses/audit-event.ts';
import { exampleId } from '../../http/responses/fields.ts';
import { route, type Route } from '../../http/request/route.ts';
import { cursor, limit, text, timeText } from './fields.ts';

export interface AuditEventDeps {
  auditEvents: Pick<AuditStore, 'list'>;
}

const listQuery = z.object({
  action: z.enum(AUDIT_ACTIONS, `must be one of ${AUDIT_ACTIONS.join(', ')}`).optional(),
  actor: text(1, 128)
    .optional()
    .meta({
      description:
        'Id of the API key that did it, `admin` for operators, or `system` for Posthorn itself',
      example: exampleId('key'),
    }),
  targetId: text(1, 128)
    .optional()
    .meta({ description: 'Id of what it was done to', example: exampleId('wh') }),
  from: timeText.optional().meta({ description: 'Recorded at this time or later' }),
  to: timeText.optional().meta({ description: 'Recorded at this time or earlier' }),
  limit: limit(100, 50),
  cursor: cursor('aud').optional(),
});

/** As of messages: what a page may hold in memory. */
const MAX_PAGE_CHARS = 1_048_576;

/** See docs/contract.md C17. */
export function auditEventRoutes({ auditEvents }: AuditEventDeps): Route[] {
  return [
    route({
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
        const { from, to, ...filter } = query;
        const { events, nextCursor } = await auditEvents.list(companyId, {
          ...filter,
          fromMs: from === undefined ? undefined : Date.parse(from),
          toMs: to === undefined ? undefined : Date.parse(to),
          maxChars: MAX_PAGE_CHARS,
        });
        return { data: events.map(describeAuditEvent), nextCursor };
      },
    }),
  ];
}
