import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { z } from 'zod';
import { notFound } from '../../http/api-error.ts';
import { deliverySchema, describeDelivery } from '../../http/responses/delivery.ts';
import { describeResend, resendSchema } from '../../http/responses/resend.ts';
import { NO_FIELDS, route, type Route } from '../../http/request/route.ts';
import { cursor, idText, limit } from './fields.ts';
import { resendDelivery, type ResendDeliveryDeps } from '../../resend/resend-delivery.ts';

export interface ResendRouteDeps extends Omit<ResendDeliveryDeps, 'takeTurn'> {
  resends: Pick<ResendStore, 'findShown' | 'listShown' | 'askToAbort'>;
  nowMs: () => number;
}

const listQuery = z.object({
  appId: idText('app')
    .optional()
    .meta({ description: 'Only those of the whole app, not of its webhooks and deliveries' }),
  webhookId: idText('wh').optional().meta({
    description: 'Only those of the webhook, and of single deliveries to it',
  }),
  limit: limit(100, 50),
  cursor: cursor('rsnd').optional(),
});

const tag = 'Deliveries';
const versionedOnly = true;

/** See docs/contract.md C11. */
export function resendRoutes(deps: ResendRouteDeps): Route[] {
  return [resendRoute(deps), listRoute(deps), getRoute(deps), abortRoute(deps)];
}

function resendRoute(deps: ResendRouteDeps): Route {
  return route({
    method: 'post',
    path: '/deliveries/:deliveryId/resend',
    versionedOnly,
    scope: 'messages:write',
    portal: 'resend',
    audit: { action: 'resend.started', target: 'delivery' },
    tag,
    summary: 'Resend a delivery',
    description:
      'Makes one attempt, which has the next number and is not retried. A success makes the delivery `delivered`; a failure leaves its status as it was.',
    body: NO_FIELDS,
    isBodyOptional: true,
    response: { status: 200, message: 'Resend started', data: deliverySchema },
    errors: [
      'not_found',
      'delivery_pending',
      'resend_running',
      'webhook_deleted',
      'webhook_disabled',
      'payload_erased',
    ],
    async handle({ caller: { companyId }, params: { deliveryId = '' }, takeTurn }) {
      const resent = await resendDelivery({ ...deps, takeTurn }, companyId, deliveryId);
      return { data: describeDelivery(resent.source, resent.sentHeaders) };
    },
  });
}

function listRoute({ resends }: ResendRouteDeps): Route {
  return route({
    method: 'get',
    path: '/resends',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List resends, newest first',
    description: 'A key of one app lists the resends of this app, or those of one webhook of it.',
    query: listQuery,
    response: {
      status: 200,
      message: 'Resends found',
      hasCursor: true,
      data: z.array(resendSchema),
    },
    async handle({ caller, query }) {
      const { limit: most, cursor: beforeId, webhookId } = query;
      const appId = query.appId ?? (webhookId === undefined ? caller.appId : null) ?? undefined;
      const filter = { appId, webhookId, beforeId };
      const found = await resends.listShown(caller.companyId, filter, most + 1);
      const shown = found.slice(0, most);
      const nextCursor = found.length > most ? (shown.at(-1)?.id ?? null) : null;
      return { data: shown.map(describeResend), nextCursor };
    },
  });
}

function getRoute(deps: ResendRouteDeps): Route {
  return route({
    method: 'get',
    path: '/resends/:resendId',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get the progress of a resend',
    response: { status: 200, message: 'Resend found', data: resendSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { resendId = '' } }) {
      const found = await deps.resends.findShown(companyId, resendId);
      if (!found) throw notFound('resend');
      return { data: describeResend(found) };
    },
  });
}

function abortRoute({ resends, nowMs }: ResendRouteDeps): Route {
  return route({
    method: 'post',
    path: '/resends/:resendId/abort',
    versionedOnly,
    scope: 'messages:write',
    portal: 'resend',
    audit: { action: 'resend.aborted', target: 'resend' },
    tag,
    summary: 'Abort a resend',
    description:
      'Nothing further is sent. What is under way is settled and counted for 20 seconds, then the resend is `aborted`; `succeeded` and `failed` count what was sent, and the rest of `total` was not. A resend that has ended stays as it is.',
    body: NO_FIELDS,
    isBodyOptional: true,
    response: { status: 200, message: 'Abort asked', data: resendSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { resendId = '' } }) {
      if (!(await resends.findShown(companyId, resendId))) throw notFound('resend');
      await resends.askToAbort(companyId, resendId, nowMs());
      const asked = await resends.findShown(companyId, resendId);
      if (!asked) throw notFound('resend');
      return { data: describeResend(asked) };
    },
  });
}
