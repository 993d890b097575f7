import {
  CANCEL_REASONS,
  type DeliveryStatus,
  EXHAUST_REASONS,
  STATUSES,
} from '@posthorn/domain/delivery/delivery.ts';
import { eventType } from '@posthorn/domain/field-types.ts';
import { idPattern } from '@posthorn/domain/ids.ts';
import { WAITING } from '@posthorn/domain/waiting.ts';
import type { DeliveryPosition } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { z } from 'zod';
import { invalidRequest } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { listAllDeliveries, statusesOf, statusOfReason } from '../history/list-deliveries.ts';
import { NO_FIELDS, route, type Route } from '../http/route.ts';
import { cancelDelivery, cancelPending } from '../webhooks/cancel-deliveries.ts';
import {
  deliverySchema,
  describeDelivery,
  describeListedDelivery,
  listedDeliverySchema,
} from './message-responses.ts';
import {
  exampleId,
  idText,
  isoTime,
  limit,
  optionalFields,
  text,
  timeField,
  timeText,
} from './fields.ts';

const versionedOnly = true;
const tag = 'Deliveries';

/** See docs/contract.md C12.8 and C25. */
export function deliveryRoutes(gateway: Gateway): Route[] {
  return [listRoute(gateway), cancelRoute(gateway), cancelPendingRoute(gateway)];
}

const idSource = (prefix: 'msg' | 'dlv'): string => idPattern(prefix).source.slice(1, -1);

/** The last delivery of a page, behind its message: deliveries are in the order of their messages. */
const cursor = z
  .string()
  .regex(new RegExp(`^${idSource('msg')}\\.${idSource('dlv')}$`), 'is not a cursor of this list')
  .meta({
    description: '`nextCursor` of the previous page',
    example: `${exampleId('msg')}.${exampleId('dlv')}`,
  });

function positionOf(text: string): DeliveryPosition {
  const [messageId = '', deliveryId = ''] = text.split('.');
  return { messageId, deliveryId };
}

const oneOf = (names: readonly string[]): string => `(${names.join('|')})`;

const listQuery = z.object({
  status: text(1, 50)
    .regex(
      new RegExp(`^${oneOf(STATUSES)}(,${oneOf(STATUSES)})*$`),
      `must be ${STATUSES.join(', ')}, or several with commas between them`,
    )
    .optional()
    .meta({
      description:
        'Only deliveries with this status, or with one of several with commas between them',
    }),
  waiting: z
    .enum(WAITING, `must be one of ${WAITING.join(', ')}`)
    .optional()
    .meta({
      description:
        'Only pending deliveries that wait without an attempt to come: on `hold`, or for the `time` of their message',
    }),
  reason: z
    .enum([...CANCEL_REASONS, ...EXHAUST_REASONS])
    .optional()
    .meta({ description: 'Only deliveries that were cancelled or exhausted for this reason' }),
  webhookId: idText('wh').optional(),
  appId: idText('app').optional().meta({ description: 'Only deliveries of messages to this app' }),
  eventType: eventType
    .optional()
    .meta({ description: 'Only deliveries of messages with exactly this event type' }),
  since: timeText
    .optional()
    .meta({ description: 'Only deliveries of messages that were created at this time or later' }),
  until: timeText
    .optional()
    .meta({ description: 'Only deliveries of messages that were created at this time or earlier' }),
  limit: limit(100, 50),
  cursor: cursor.optional(),
});

function listRoute(gateway: Gateway): Route {
  return route({
    operationId: 'listDeliveries',
    method: 'get',
    path: '/deliveries',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List deliveries of all webhooks, those of the newest message first',
    description:
      'Without `delivered` among the statuses the list has the deliveries whose first attempt was made, or that have ended without one. One request examines a limited number of deliveries: with filters by webhook and reason, app, event type or `waiting` a page may hold fewer entries than `limit` although `nextCursor` is not null, and none where 25,000 in a row do not fit.',
    query: listQuery,
    response: {
      status: 200,
      message: 'Deliveries found',
      hasCursor: true,
      data: z.array(listedDeliverySchema),
    },
    async handle({ caller, query, nextSlice }) {
      const { since, until, cursor: after, status, ...filter } = query;
      const statuses = status?.split(',').filter(isStatus);
      assertPossible({ ...filter, statuses });
      // A key of one app lists the deliveries of this app's messages, or those to one webhook of it.
      const ofKey = filter.webhookId === undefined ? (caller.appId ?? undefined) : undefined;
      const { deliveries, next } = await listAllDeliveries(
        { ...gateway, nextSlice },
        caller.companyId,
        {
          ...filter,
          statuses,
          appId: filter.appId ?? ofKey,
          sinceMs: since === undefined ? undefined : Date.parse(since),
          untilMs: until === undefined ? undefined : Date.parse(until),
          after: after === undefined ? undefined : positionOf(after),
        },
      );
      return {
        data: deliveries.map(describeListedDelivery),
        nextCursor: next && `${next.messageId}.${next.deliveryId}`,
      };
    },
  });
}

const isStatus = (text: string): text is DeliveryStatus => STATUSES.some((each) => each === text);

/** Throws ApiError 400 for filters that no delivery can pass. */
function assertPossible({ reason, waiting, ...query }: Parameters<typeof statusesOf>[0]): void {
  if (reason && statusesOf({ ...query, reason }).length === 0) {
    const message = `is one of ${statusOfReason(reason)} deliveries`;
    throw invalidRequest([{ path: 'reason', message }]);
  }
  if (waiting && statusesOf({ ...query, reason, waiting }).length === 0) {
    throw invalidRequest([{ path: 'waiting', message: 'is of pending deliveries' }]);
  }
}

function cancelRoute(gateway: Gateway): Route {
  return route({
    operationId: 'cancelDelivery',
    method: 'post',
    path: '/deliveries/:deliveryId/cancel',
    versionedOnly,
    scope: 'messages:write',
    portal: 'controlDeliveries',
    audit: { action: 'delivery.cancelled', target: 'delivery' },
    tag,
    summary: 'Cancel a pending delivery',
    description:
      'No further attempt is begun. The answer to one that is under way still counts: a success makes the delivery `delivered`.',
    body: NO_FIELDS,
    isBodyOptional: true,
    response: { status: 200, message: 'Delivery cancelled', data: deliverySchema },
    errors: ['not_found', 'delivery_final'],
    async handle({ caller: { companyId }, params: { deliveryId = '' }, nextSlice }) {
      const cancelled = await cancelDelivery({ ...gateway, nextSlice }, companyId, deliveryId);
      return { data: describeDelivery(cancelled.source, cancelled.sentHeaders) };
    },
  });
}

const cancelPendingBody = z
  .object(
    optionalFields({
      createdBefore: timeText.meta({
        description:
          'Only deliveries that were created before. Defaults to the time of the request',
      }),
    }),
  )
  .meta({ id: 'CancelPending' });

const cancelPendingSchema = z
  .object({
    cancelBefore: timeField.meta({
      description:
        'Pending deliveries that were created before are cancelled; a later time than that of the request when one was given before',
    }),
  })
  .meta({ id: 'PendingCancelled' });

function cancelPendingRoute(gateway: Gateway): Route {
  return route({
    operationId: 'cancelPendingDeliveries',
    method: 'post',
    path: '/webhooks/:webhookId/cancel-pending',
    versionedOnly,
    scope: 'messages:write',
    portal: 'controlDeliveries',
    audit: { action: 'webhook.pending_cancelled', target: 'webhook' },
    tag: 'Webhooks',
    summary: 'Cancel the pending deliveries to a webhook',
    description:
      'Takes one write, however many deliveries there are. No attempt is begun five seconds later; the answers to those that are under way still count. Messages that are sent from then on are delivered.',
    body: cancelPendingBody,
    isBodyOptional: true,
    response: { status: 202, message: 'Deliveries cancelled', data: cancelPendingSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
      const { createdBefore } = value;
      const createdBeforeMs = createdBefore === undefined ? null : Date.parse(createdBefore);
      const asked = { companyId, webhookId, createdBeforeMs };
      const { before, after } = await cancelPending(gateway, asked);
      const timeOf = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
      return {
        data: { cancelBefore: timeOf(after.cancelBeforeMs) },
        changed: {
          before: { cancelBefore: timeOf(before.cancelBeforeMs) },
          after: { cancelBefore: timeOf(after.cancelBeforeMs) },
        },
      };
    },
  });
}
