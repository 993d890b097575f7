import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { FilterCancellation } from '@posthorn/domain/delivery/filter-cancellation.ts';
import { FILTER_REASONS } from '@posthorn/domain/delivery/delivery-filter.ts';
import { FAILED_STATUSES, type ResendFilter } from '@posthorn/domain/resend.ts';
import { WAITING } from '@posthorn/domain/waiting.ts';
import { z } from 'zod';
import { notFound } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { type Planned, planCancellation, planResend } from '../history/plan-selected.ts';
import { type ApiResponse, route, type Route } from '../http/route.ts';
import type { Caller } from '../keys/rights.ts';
import type { NextSlice } from '../limits/slices.ts';
import {
  describeFilter,
  filterBody,
  filterQuery,
  narrowedFilterOf,
  type WrittenFilter,
} from './delivery-filter.ts';
import { cursor, idField, idText, isoTime, limit, timeField } from './fields.ts';
import { describeResend, findStarted, resendSchema } from './resends.ts';

const versionedOnly = true;
const tag = 'Deliveries';

/** See docs/contract.md C25.6 to C25.8, and C11.11. */
export function deliveryFilterRoutes(gateway: Gateway): Route[] {
  return [
    ...estimateRoutes(gateway),
    cancelRoute(gateway),
    resendRoute(gateway),
    listRoute(gateway),
    getRoute(gateway),
  ];
}

const PENDING: readonly DeliveryStatus[] = ['pending'];

function plannedOf(
  written: WrittenFilter,
  caller: Caller,
  statuses: readonly DeliveryStatus[],
): Planned {
  return { companyId: caller.companyId, filter: narrowedFilterOf(written, caller, statuses) };
}

const planSchema = z
  .object({
    deliveries: z.int().meta({ description: 'Deliveries that the filter selects now' }),
    webhooks: z.int().meta({ description: 'Webhooks that these deliveries are to' }),
    isComplete: z.boolean().meta({
      description:
        'False when 100,000 deliveries or messages were read, or five seconds were over: then there are at least so many',
    }),
  })
  .meta({ id: 'DeliveryPlan' });

const estimate = {
  method: 'get',
  versionedOnly,
  scope: 'read',
  portal: 'view',
  tag,
  query: z.object(filterQuery),
  response: { status: 200, message: 'Deliveries counted', data: planSchema },
  errors: ['not_found'],
} as const;

function estimateRoutes(gateway: Gateway): Route[] {
  return [
    route({
      ...estimate,
      operationId: 'estimateCancellation',
      path: '/deliveries/cancel/estimate',
      summary: 'Count the pending deliveries that a filter selects',
      description: 'Returns how many deliveries `POST /deliveries/cancel` would cancel now.',
      async handle({ caller, query, nextSlice, reserve }) {
        const planned = await namedIn(gateway, plannedOf(query, caller, PENDING));
        return { data: await planCancellation({ ...gateway, nextSlice, reserve }, planned) };
      },
    }),
    route({
      ...estimate,
      operationId: 'estimateResend',
      path: '/deliveries/resend/estimate',
      summary: 'Count the failed deliveries that a filter selects',
      description:
        'Returns how many deliveries `POST /deliveries/resend` would send again now: those to enabled webhooks.',
      async handle({ caller, query, nextSlice }) {
        const planned = await namedIn(gateway, plannedOf(query, caller, FAILED_STATUSES));
        return { data: await planResend({ ...gateway, nextSlice }, planned) };
      },
    }),
  ];
}

const body = z.object(filterBody).meta({ id: 'DeliveryFilter' });

const cancellationSchema = z
  .object({
    id: idField('cncl'),
    status: z.enum(['running', 'done']).meta({
      description: '`running` until every selected delivery is stored as cancelled',
    }),
    filter: z.object({
      status: z.string().nullable().meta({ example: 'pending' }),
      waiting: z.enum(WAITING).nullable(),
      reason: z.enum(FILTER_REASONS).nullable(),
      webhookId: idField('wh').nullable(),
      appId: idField('app').nullable(),
      eventType: z.string().nullable(),
      since: timeField.nullable(),
      until: timeField.nullable(),
    }),
    createdBefore: timeField.meta({
      description: 'Only deliveries that were created before: what is created later is delivered',
    }),
    cancelled: z.int().meta({
      description:
        'Deliveries that were found pending and are cancelled now. One whose attempt came due before that is cancelled too, and not counted',
    }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Cancellation' });

function describeCancellation(
  cancellation: FilterCancellation,
): z.infer<typeof cancellationSchema> {
  const { id, status, filter, beforeMs, cancelled, createdAtMs, updatedAtMs } = cancellation;
  return {
    id,
    status,
    filter: describeFilter(filter),
    createdBefore: isoTime(beforeMs),
    cancelled,
    createdAt: isoTime(createdAtMs),
    updatedAt: isoTime(updatedAtMs),
  };
}

function cancelRoute(gateway: Gateway): Route {
  return route({
    operationId: 'cancelDeliveries',
    method: 'post',
    path: '/deliveries/cancel',
    versionedOnly,
    scope: 'messages:write',
    portal: 'controlDeliveries',
    audit: { action: 'deliveries.cancelled', target: 'cancellation' },
    tag,
    summary: 'Cancel all pending deliveries that a filter selects',
    description:
      'Those that were created before the request, whatever their webhook and however many there are. No attempt of them is begun five seconds later; the answers to those that are under way still count. Each delivery shows it once it is stored, newest first. At least one field besides `status` is needed. `GET /api/v1/cancellations/{id}` shows the progress.',
    body,
    response: { status: 202, message: 'Deliveries cancelled', data: cancellationSchema },
    errors: ['not_found', 'too_many_cancellations'],
    creation: {
      async find({ caller: { companyId }, newId }) {
        const found = await gateway.cancellations.findOne(companyId, newId('cncl'));
        return found && { data: describeCancellation(found) };
      },
    },
    async handle({ caller, body: { value }, newId }) {
      const planned = await namedIn(gateway, plannedOf(value, caller, PENDING));
      const started = await gateway.startCancellation({ ...planned, id: newId('cncl') });
      const after = { ...value, cancellationId: started.id };
      return { data: describeCancellation(started), changed: { before: {}, after } };
    },
  });
}

/**
 * Returns what is planned. Throws ApiError 404 for an app or a webhook that does not exist: a wrong id would select nothing,
 * without a word.
 */
async function namedIn({ apps, readOutlines }: Gateway, planned: Planned): Promise<Planned> {
  const { companyId, filter } = planned;
  const { appId, webhookId } = filter;
  if (appId !== undefined && !(await apps.has(companyId, appId))) throw notFound('app');
  if (webhookId === undefined) return planned;
  if (!(await readOutlines(companyId, [webhookId])).has(webhookId)) throw notFound('webhook');
  return planned;
}

function resendRoute(gateway: Gateway): Route {
  return route({
    operationId: 'resendDeliveries',
    method: 'post',
    path: '/deliveries/resend',
    versionedOnly,
    scope: 'messages:write',
    portal: 'resend',
    audit: { action: 'resend.started', target: 'resend' },
    tag,
    summary: 'Resend all failed deliveries that a filter selects',
    description:
      'Resends the exhausted and cancelled deliveries to enabled webhooks in the background, several webhooks at a time, each oldest first. At least one field besides `status` is needed. One runs at a time for a webhook, an app, or, without these, the company. `GET /api/v1/resends/{id}` shows the progress.',
    body,
    response: { status: 202, message: 'Resend started', data: resendSchema },
    errors: ['not_found', 'webhook_disabled', 'resend_running'],
    creation: { find: findStarted(gateway.resends) },
    async handle({ caller, body: { value }, newId, nextSlice }) {
      const planned = await namedIn(gateway, plannedOf(value, caller, FAILED_STATUSES));
      const started = await startResend({ ...gateway, nextSlice }, newId('rsnd'), planned);
      const changed = { before: {}, after: { ...value, resendId: started.id } };
      return { data: describeResend(started), changed } satisfies ApiResponse;
    },
  });
}

async function startResend(
  gateway: Gateway & { nextSlice: NextSlice },
  id: string,
  planned: Planned,
): ReturnType<Gateway['startResend']['ofFilter']> {
  const { deliveries: total } = await planResend(gateway, planned);
  const { webhookId, appId, sinceMs, untilMs, statuses, reason, eventType } = planned.filter;
  const filter: ResendFilter = { statuses, reason, appId, eventType };
  return gateway.startResend.ofFilter({
    id,
    companyId: planned.companyId,
    sinceMs: sinceMs ?? 0,
    untilMs: untilMs ?? null,
    webhookId: webhookId ?? null,
    filter,
    total,
  });
}

const listQuery = z.object({
  appId: idText('app').optional().meta({ description: 'Only those whose filter has this app' }),
  webhookId: idText('wh')
    .optional()
    .meta({ description: 'Only those whose filter has this webhook' }),
  limit: limit(100, 50),
  cursor: cursor('cncl').optional(),
});

function listRoute({ cancellations }: Gateway): Route {
  return route({
    operationId: 'listCancellations',
    method: 'get',
    path: '/cancellations',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List cancellations by filter, newest first',
    description: 'A key of one app lists those of this app, or those of one webhook of it.',
    query: listQuery,
    response: {
      status: 200,
      message: 'Cancellations found',
      hasCursor: true,
      data: z.array(cancellationSchema),
    },
    async handle({ caller, query }) {
      const { limit: most, cursor: beforeId, webhookId } = query;
      const ofKey = webhookId === undefined ? (caller.appId ?? undefined) : undefined;
      const filter = { appId: query.appId ?? ofKey, webhookId, beforeId };
      const found = await cancellations.list(caller.companyId, filter, most + 1);
      const page = found.slice(0, most);
      const nextCursor = found.length > most ? (page.at(-1)?.id ?? null) : null;
      return { data: page.map(describeCancellation), nextCursor };
    },
  });
}

function getRoute({ cancellations }: Gateway): Route {
  return route({
    operationId: 'getCancellation',
    method: 'get',
    path: '/cancellations/:cancellationId',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get a cancellation by filter',
    response: { status: 200, message: 'Cancellation found', data: cancellationSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { cancellationId = '' } }) {
      const found = await cancellations.findOne(companyId, cancellationId);
      if (!found) throw notFound('cancellation');
      return { data: describeCancellation(found) };
    },
  });
}
