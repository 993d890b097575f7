import { idPattern } from '@posthorn/domain/ids.ts';
import type { DeliveryPosition } from '@posthorn/platform/mongo/messages/delivery-pages.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { listAllDeliveries } from '../history/list-deliveries.ts';
import { NO_FIELDS, route, type Route } from '../http/route.ts';
import { cancelDelivery, cancelPending } from '../webhooks/cancel-deliveries.ts';
import {
  deliverySchema,
  describeDelivery,
  describeListedDelivery,
  listedDeliverySchema,
} from './message-responses.ts';
import { filterOf, filterQuery } from './delivery-filter.ts';
import { exampleId, isoTime, limit, optionalFields, timeField, timeText } from './fields.ts';

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

const listQuery = z.object({
  ...filterQuery,
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
      const { cursor: after, limit: most, ...written } = query;
      const { deliveries, next } = await listAllDeliveries(
        { ...gateway, nextSlice },
        caller.companyId,
        {
          ...filterOf(written, caller),
          limit: most,
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
