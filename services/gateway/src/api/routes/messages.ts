import { z } from 'zod';
import { listDeliveries } from '../../history/list-deliveries.ts';
import { listMessages, type ListStores } from '../../history/list-messages.ts';
import { readDelivery, type ReadStores } from '../../history/read-delivery.ts';
import { readMessage, type ReadMessageStores } from '../../history/read-message.ts';
import { invalidRequest, notFound } from '../../http/api-error.ts';
import {
  deliverySchema,
  deliveryStatusSchema,
  describeDelivery,
} from '../../http/responses/delivery.ts';
import {
  describeListed,
  describeMessage,
  listedMessageSchema,
  messageSchema,
} from '../../http/responses/message.ts';
import { route, type Caller, type Route } from '../../http/request/route.ts';
import { cursor, idText, limit, timeText } from './fields.ts';
import { eventType } from './webhooks/webhook-fields/webhook-fields.ts';

const listQuery = z.object({
  appId: idText('app').optional(),
  webhookId: idText('wh').optional(),
  eventType: eventType.optional().meta({ description: 'Only messages of exactly this type' }),
  status: deliveryStatusSchema.optional(),
  deliveryStatus: deliveryStatusSchema.optional().meta({
    description:
      'Only messages whose delivery to `webhookId` has this status. `status` is that of the message, which may have deliveries to other webhooks',
  }),
  from: timeText.optional().meta({ description: 'Created at this time or later' }),
  to: timeText.optional().meta({ description: 'Created at this time or earlier' }),
  limit: limit(100, 50),
  cursor: cursor('msg').optional(),
});

const deliveriesQuery = z.object({ limit: limit(100, 50), cursor: cursor('wh').optional() });

export type HistoryDeps = ReadStores & ListStores & ReadMessageStores;

const versionedOnly = true;
const tag = 'Webhook messages';

/** Reads what became of messages and deliveries (docs/contract.md C12). */
export function messageRoutes(deps: HistoryDeps): Route[] {
  return [listRoute(deps), getRoute(deps), deliveriesRoute(deps), deliveryRoute(deps)];
}

function listRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/webhook-messages',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List messages, newest first',
    description:
      'One request examines a limited number of messages and deliveries. A page ends after 1 MB of payloads. It may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null.',
    query: listQuery,
    response: {
      status: 200,
      message: 'Messages found',
      hasCursor: true,
      data: z.array(listedMessageSchema),
    },
    async handle({ caller, query, takeTurn }) {
      const { from, to, ...filter } = query;
      if (filter.deliveryStatus !== undefined && filter.webhookId === undefined) {
        throw invalidRequest([{ path: 'deliveryStatus', message: 'needs webhookId' }]);
      }
      const { messages, nextCursor } = await listMessages({ ...deps, takeTurn }, caller.companyId, {
        ...filter,
        appId: filter.appId ?? appOfList(caller, filter.webhookId),
        fromMs: from === undefined ? undefined : Date.parse(from),
        toMs: to === undefined ? undefined : Date.parse(to),
      });
      return {
        data: messages.map((each) => describeListed(each.message, each.deliveries)),
        nextCursor,
      };
    },
  });
}

/** A key of one app lists the messages of this app, or those to one webhook of it. */
function appOfList({ appId }: Caller, webhookId: string | undefined): string | undefined {
  return webhookId === undefined ? (appId ?? undefined) : undefined;
}

function getRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/webhook-messages/:messageId',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get a message',
    response: { status: 200, message: 'Message found', data: messageSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { messageId = '' }, takeTurn }) {
      const read = await readMessage({ ...deps, takeTurn }, companyId, messageId);
      const { message, oldest, deliveries } = read;
      return { data: describeMessage(message, oldest, deliveries) };
    },
  });
}

function deliveriesRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/webhook-messages/:messageId/deliveries',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List the deliveries of a message, newest webhook first',
    description:
      'A page ends after about 1 MB of attempts. It may therefore hold fewer entries than `limit`, although `nextCursor` is not null.',
    query: deliveriesQuery,
    response: {
      status: 200,
      message: 'Deliveries found',
      hasCursor: true,
      data: z.array(deliverySchema),
    },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { messageId = '' }, query, takeTurn }) {
      const page = await listDeliveries(deps, { companyId, messageId, ...query });
      await takeTurn();
      return {
        data: page.deliveries.map(({ source, sentHeaders }) =>
          describeDelivery(source, sentHeaders),
        ),
        nextCursor: page.nextCursor,
      };
    },
  });
}

function deliveryRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/deliveries/:deliveryId',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag: 'Deliveries',
    summary: 'Get a delivery and its attempts',
    response: { status: 200, message: 'Delivery found', data: deliverySchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { deliveryId = '' }, takeTurn }) {
      const found = await readDelivery({ ...deps, takeTurn }, companyId, deliveryId);
      if (!found) throw notFound('delivery');
      return { data: describeDelivery(found.source, found.sentHeaders) };
    },
  });
}
