import { EVENT_TYPE_SELECTORS, eventTypeSelector, listOf } from '@posthorn/domain/field-types.ts';
import { FILTER_REASONS } from '@posthorn/domain/delivery/delivery-filter.ts';
import { OUTCOMES } from '@posthorn/domain/delivery/delivery.ts';
import type { Resend, ResendFilter } from '@posthorn/domain/resend.ts';
import { z } from 'zod';
import { notFound } from '../api-error.ts';
import { readDelivery } from '../history/deliveries.ts';
import type { Gateway } from '../gateway.ts';
import { type ApiResponse, type Creation, NO_FIELDS, route, type Route } from '../http/route.ts';
import { assertAllowed } from '../keys/rights.ts';
import { type FailedSpan, resendDelivery } from '../resend/start-resend.ts';
import { deliverySchema, describeDelivery } from './message-responses.ts';
import {
  cursor,
  idField,
  idText,
  isoTime,
  limit,
  optionalFields,
  text,
  timeField,
  timeText,
} from './fields.ts';

export const resendSchema = z
  .object({
    id: idField('rsnd'),
    kind: z.enum(['resend', 'replay']).meta({
      description: '`replay`: sends messages to a webhook that was not among their targets',
    }),
    appId: idField('app').nullable().meta({
      description:
        'The app whose failed deliveries are resent; null for a resend of one webhook or delivery, and of the whole company',
    }),
    webhookId: idField('wh').nullable().meta({
      description:
        'The webhook whose deliveries are resent; null for a resend of an app or the company',
    }),
    outcome: z.enum(OUTCOMES).nullable().meta({
      description:
        'Only deliveries whose last attempt ended with it are resent; null for all that failed',
    }),
    filter: z
      .object({
        status: z.string().nullable().meta({ example: 'exhausted,cancelled' }),
        reason: z.enum(FILTER_REASONS).nullable(),
        appId: idField('app').nullable(),
        eventType: z.string().nullable(),
      })
      .nullable()
      .meta({
        description:
          'What selects the failed deliveries of a resend by filter, beside its webhook and its time; null for other resends',
      }),
    status: z.enum(['running', 'done', 'aborted']),
    abortAskedAt: timeField.nullable().meta({
      description: 'When a client asked to abort it; null when nobody has',
    }),
    total: z.int().meta({
      description:
        'Number of deliveries to send again, counted up to 100,000 until it is `done`. With an `outcome`, all that failed while it is `running`',
    }),
    succeeded: z.int().meta({ description: '0 in a replay, whose deliveries are retried' }),
    failed: z.int().meta({ description: '0 in a replay' }),
    done: z.int().meta({
      description: 'Deliveries that were sent; in a replay the messages that the webhook gets',
    }),
    skipped: z.int().meta({
      description: 'Messages of a replay that cannot be sent, because their payload was erased',
    }),
    eventTypes: z
      .array(z.string())
      .meta({ description: 'Of a replay: only messages of these types; empty for all' }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Resend' });

export function describeResend(resend: Resend): z.infer<typeof resendSchema> {
  const { id, kind, appId, webhookId, outcome, status, abortAskedAtMs, total } = resend;
  const { succeeded, failed } = resend;
  const counts =
    kind === 'replay'
      ? { succeeded: 0, failed: 0, done: succeeded, skipped: failed }
      : { succeeded, failed, done: succeeded + failed, skipped: 0 };
  return {
    id,
    kind,
    appId,
    webhookId,
    outcome,
    filter: resend.filter && describeResendFilter(resend.filter),
    status,
    abortAskedAt: abortAskedAtMs === null ? null : isoTime(abortAskedAtMs),
    total: Math.max(total, succeeded + failed),
    ...counts,
    eventTypes: resend.eventTypes,
    createdAt: isoTime(resend.createdAtMs),
    updatedAt: isoTime(resend.updatedAtMs),
  };
}

function describeResendFilter({ statuses, reason, appId, eventType: type }: ResendFilter) {
  const status = statuses?.join(',') ?? null;
  return { status, reason: reason ?? null, appId: appId ?? null, eventType: type ?? null };
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
export function resendRoutes(gateway: Gateway): Route[] {
  return [resendRoute(gateway), listRoute(gateway), getRoute(gateway), abortRoute(gateway)];
}

function resendRoute(gateway: Gateway): Route {
  return route({
    operationId: 'resendDelivery',
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
    creation: {
      async find({ caller: { companyId }, params: { deliveryId = '' }, newId, nextSlice }) {
        if (!(await gateway.resends.findOne(companyId, newId('rsnd')))) return null;
        const resent = await readDelivery({ ...gateway, nextSlice }, companyId, deliveryId);
        return resent && { data: describeDelivery(resent.source, resent.sentHeaders) };
      },
    },
    async handle({ caller: { companyId }, params: { deliveryId = '' }, newId, nextSlice }) {
      const asked = { companyId, deliveryId, id: newId('rsnd') };
      const resent = await resendDelivery({ ...gateway, nextSlice }, asked);
      return { data: describeDelivery(resent.source, resent.sentHeaders) };
    },
  });
}

function listRoute({ resends }: Gateway): Route {
  return route({
    operationId: 'listResends',
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

function getRoute(gateway: Gateway): Route {
  return route({
    operationId: 'getResend',
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
      const found = await gateway.resends.findShown(companyId, resendId);
      if (!found) throw notFound('resend');
      return { data: describeResend(found) };
    },
  });
}

function abortRoute({ resends, nowMs }: Gateway): Route {
  return route({
    operationId: 'abortResend',
    method: 'post',
    path: '/resends/:resendId/abort',
    versionedOnly,
    scope: 'messages:write',
    portal: ['resend', 'controlDeliveries'],
    audit: { action: 'resend.aborted', target: 'resend' },
    tag,
    summary: 'Abort a resend',
    description:
      'Nothing further is sent. What is under way is settled and counted for 20 seconds, then the resend is `aborted`; `succeeded` and `failed` count what was sent, and the rest of `total` was not. A resend that has ended stays as it is.',
    body: NO_FIELDS,
    isBodyOptional: true,
    response: { status: 200, message: 'Abort asked', data: resendSchema },
    errors: ['not_found'],
    async handle({ caller, params: { resendId = '' } }) {
      const { companyId } = caller;
      const found = await resends.findShown(companyId, resendId);
      if (!found) throw notFound('resend');
      // `controlDeliveries` alone starts replays, and no resends.
      if (found.kind === 'resend') assertAllowed({ portal: 'resend' }, caller);
      await resends.askToAbort(companyId, resendId, nowMs());
      const asked = await resends.findShown(companyId, resendId);
      if (!asked) throw notFound('resend');
      return { data: describeResend(asked) };
    },
  });
}

const spanFields = {
  since: timeText,
  ...optionalFields({
    until: timeText.meta({
      description: 'Not before `since`. Defaults to the time of the request',
    }),
  }),
};

// Runs even if another field is wrong: one response reports every problem.
const ALWAYS = { when: () => true };

const ofAppBody = z
  .object(spanFields)
  .superRefine(refuseUntilBeforeSince, ALWAYS)
  .meta({ id: 'ResendFailed' });

const ofWebhookBody = z
  .object({
    ...spanFields,
    ...optionalFields({
      outcome: z.enum(OUTCOMES).exclude(['success']).meta({
        description:
          'Only deliveries whose last attempt ended with it. Without it, all that failed',
      }),
    }),
  })
  .superRefine(refuseUntilBeforeSince, ALWAYS)
  .meta({ id: 'ResendFailedOfWebhook' });

interface SpanBody {
  since: string;
  until?: string | undefined;
}

/** Only compares two times. A field that is not one was reported already. */
function refuseUntilBeforeSince({ since, until }: SpanBody, context: z.RefinementCtx): void {
  if (typeof until !== 'string' || typeof since !== 'string') return;
  if (!(Date.parse(until) < Date.parse(since))) return;
  context.addIssue({ code: 'custom', path: ['until'], message: 'must not be before since' });
}

const MAX_TYPES = 100;

const chosenTypes = listOf(eventTypeSelector, MAX_TYPES, 'must be a list of event types').meta({
  description:
    'Only messages of these types; `order.*` for all that begin with `order.`. Without it, all that the webhook receives',
});

const replayBody = z
  .object({ ...spanFields, ...optionalFields({ eventTypes: chosenTypes }) })
  .superRefine(refuseUntilBeforeSince, ALWAYS)
  .meta({ id: 'ReplayMissing' });

const replayQuery = z
  .object({
    since: timeText,
    until: timeText.optional(),
    eventTypes: text(1, MAX_TYPES * 129)
      .regex(
        EVENT_TYPE_SELECTORS,
        'must be event types with commas between them, with * only after . : or / at the end of one',
      )
      .refine((list) => list.split(',').length <= MAX_TYPES, `must be at most ${MAX_TYPES} types`)
      .optional()
      .meta({ description: 'Only messages of these types, with commas between them' }),
  })
  .superRefine(refuseUntilBeforeSince, ALWAYS);

const replayEstimateSchema = z
  .object({
    total: z.int().meta({
      description: 'Messages that a replay would send now, among the first 100,000 of the time',
    }),
  })
  .meta({ id: 'ReplayEstimate' });

const estimateSchema = z
  .object({
    total: z
      .int()
      .meta({ description: 'Number of deliveries to send again; counted up to 100,000' }),
  })
  .meta({ id: 'ResendEstimate' });
const estimate = {
  method: 'get',
  versionedOnly: true,
  scope: 'read',
  portal: 'view',
  query: z.object({ since: timeText }),
  response: { status: 200, message: 'Deliveries counted', data: estimateSchema },
  errors: ['not_found'],
} as const;
const response = { status: 202, message: 'Resend started', data: resendSchema } as const;

/** Resends what failed in a span of time, in the background (docs/contract.md C11.4, C11.5). */
export function resendFailedRoutes({ startResend, resends }: Gateway): Route[] {
  const creation = { find: findStarted(resends) };
  return [
    route({
      operationId: 'startWebhookResend',
      method: 'post',
      path: '/webhooks/:webhookId/resend-failed',
      versionedOnly,
      scope: 'messages:write',
      portal: 'resend',
      audit: { action: 'resend.started', target: 'webhook' },
      tag: 'Webhooks',
      summary: 'Resend the failed deliveries of a webhook',
      description:
        'Makes one attempt for each exhausted or cancelled delivery that was created from `since` to `until`, or for those of one `outcome`. Attempts run in the background, oldest delivery first. Only one such resend of a webhook runs at a time. `GET /api/v1/resends/{id}` shows the progress.',
      body: ofWebhookBody,
      response,
      errors: ['not_found', 'webhook_disabled', 'resend_running'],
      creation,
      async handle({ caller, params: { webhookId = '' }, body: { value }, newId }) {
        const span = { ...spanOf(caller.companyId, value), id: newId('rsnd') };
        const { outcome = null } = value;
        return started(await startResend.ofWebhook({ ...span, webhookId, outcome }), value);
      },
    }),
    route({
      operationId: 'startAppResend',
      method: 'post',
      path: '/apps/:appId/resend-failed',
      versionedOnly,
      scope: 'messages:write',
      portal: 'resend',
      audit: { action: 'resend.started', target: 'app' },
      tag: 'Apps',
      summary: 'Resend the failed deliveries of an app',
      description:
        'Makes one attempt for each exhausted or cancelled delivery to a webhook of the app that was created from `since` to `until`. Attempts run in the background, for several webhooks at a time, oldest delivery of each first. Disabled webhooks are left out. When an endpoint keeps failing for five minutes, its remaining deliveries are not sent: they count as `failed` and keep their status. Only one resend of an app runs at a time. `GET /api/v1/resends/{id}` shows the progress.',
      body: ofAppBody,
      response,
      errors: ['not_found', 'resend_running'],
      creation,
      async handle({ caller, params: { appId = '' }, body: { value }, newId }) {
        const span = { ...spanOf(caller.companyId, value), id: newId('rsnd') };
        return started(await startResend.ofApp({ ...span, appId }), value);
      },
    }),
    ...estimateRoutes(startResend),
  ];
}

/** Sends messages to a webhook that was not among their targets (docs/contract.md C25.3). */
export function replayRoutes({ startResend, resends }: Gateway): Route[] {
  return [
    route({
      operationId: 'startReplay',
      method: 'post',
      path: '/webhooks/:webhookId/replay-missing',
      versionedOnly,
      scope: 'messages:write',
      portal: 'controlDeliveries',
      audit: { action: 'replay.started', target: 'webhook' },
      tag: 'Webhooks',
      summary: 'Send a webhook messages that it has missed',
      description:
        'Sends the messages of the app that were created from `since` to `until`, that the webhook is not among the targets of and that have an event type which it receives now. They become deliveries of it like all others, with their retries, oldest message first, in the background. A message is added once, however often this is repeated. One replay or resend of a webhook runs at a time; `GET /api/v1/resends/{id}` shows the progress.',
      body: replayBody,
      response: { ...response, message: 'Replay started' },
      errors: ['not_found', 'webhook_disabled', 'resend_running'],
      creation: { find: findStarted(resends) },
      async handle({ caller, params: { webhookId = '' }, body: { value }, newId, nextSlice }) {
        const { eventTypes = [] } = value;
        const span = { ...spanOf(caller.companyId, value), id: newId('rsnd') };
        const asked = { ...span, webhookId, eventTypes, nextSlice };
        return started(await startResend.ofMissing(asked), value);
      },
    }),
    route({
      operationId: 'estimateReplay',
      method: 'get',
      versionedOnly,
      scope: 'read',
      portal: 'view',
      query: replayQuery,
      errors: ['not_found'],
      path: '/webhooks/:webhookId/replay-missing/estimate',
      response: { status: 200, message: 'Messages counted', data: replayEstimateSchema },
      tag: 'Webhooks',
      summary: 'Count the messages that a webhook has missed',
      description: 'Returns how many messages `replay-missing` would send now.',
      async handle({ caller: { companyId }, params: { webhookId = '' }, query, nextSlice }) {
        const eventTypes = query.eventTypes?.split(',') ?? [];
        const asked = { ...spanOf(companyId, query), webhookId, eventTypes, nextSlice };
        return { data: { total: await startResend.countOfMissing(asked) } };
      },
    }),
  ];
}

export const findStarted =
  (resends: Gateway['resends']): Required<Creation>['find'] =>
  async ({ caller: { companyId }, newId }) => {
    const found = await resends.findShown(companyId, newId('rsnd'));
    return found && { data: describeResend(found) };
  };

function estimateRoutes(startResend: Gateway['startResend']): Route[] {
  return [
    route({
      operationId: 'estimateWebhookResend',
      ...estimate,
      path: '/webhooks/:webhookId/resend-failed/estimate',
      tag: 'Webhooks',
      summary: 'Count the failed deliveries of a webhook',
      description: 'Returns how many deliveries `resend-failed` would send again now.',
      async handle({ caller: { companyId }, params: { webhookId = '' }, query }) {
        const span = { companyId, webhookId, sinceMs: Date.parse(query.since), untilMs: null };
        return { data: { total: await startResend.countOfWebhook(span) } };
      },
    }),
    route({
      operationId: 'estimateAppResend',
      ...estimate,
      path: '/apps/:appId/resend-failed/estimate',
      tag: 'Apps',
      summary: 'Count the failed deliveries of an app',
      description:
        'Returns how many deliveries `resend-failed` would send again now: those to enabled webhooks of the app.',
      async handle({ caller: { companyId }, params: { appId = '' }, query }) {
        const span = { companyId, appId, sinceMs: Date.parse(query.since), untilMs: null };
        return { data: { total: await startResend.countOfApp(span) } };
      },
    }),
  ];
}

function started(resend: Resend, asked: SpanBody): ApiResponse {
  const changed = { before: {}, after: { ...asked, resendId: resend.id } };
  return { data: describeResend(resend), changed };
}

function spanOf(companyId: string, { since, until }: SpanBody): FailedSpan {
  return {
    companyId,
    sinceMs: Date.parse(since),
    untilMs: until === undefined ? null : Date.parse(until),
  };
}
