import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import { delivery, deliveryStatus, describeDelivery } from '../../http/answers/delivery.ts';
import {
  describeListed,
  describeMessage,
  listedMessage,
  message,
} from '../../http/answers/message.ts';
import { notFound } from '../../http/api-error.ts';
import { route, type Route } from '../../http/route.ts';
import { listMessages, type ListDeps } from '../../history/list-messages.ts';
import { deliveriesOf, readDelivery, type ReadDeps } from '../../history/read-delivery.ts';
import { cursor, idText, limit, timeText } from './fields.ts';

const listQuery = z.object({
  appId: idText('app').optional(),
  webhookId: idText('wh').optional(),
  status: deliveryStatus.optional(),
  from: timeText.optional().meta({ description: 'Created at this time or later' }),
  to: timeText.optional().meta({ description: 'Created at this time or earlier' }),
  limit: limit(100, 50),
  cursor: cursor('msg').optional(),
});

const deliveriesQuery = z.object({ limit: limit(100, 50), cursor: cursor('wh').optional() });

export type HistoryDeps = ReadDeps & ListDeps & { webhooks: Pick<WebhookStore, 'findTarget'> };

const versionedOnly = true;
const tag = 'Webhook messages';

/** What became of messages and deliveries (beyond the document). */
export function messageHistoryRoutes(deps: HistoryDeps): Route[] {
  return [listRoute(deps), getRoute(deps), deliveriesRoute(deps), deliveryRoute(deps)];
}

function listRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/webhook-messages',
    versionedOnly,
    tag,
    summary: 'List messages, newest first',
    description:
      'A page looks at a bounded number of messages and deliveries: it may hold fewer than `limit`, with a filter by status even none, while `nextCursor` is not null.',
    query: listQuery,
    answer: {
      status: 200,
      message: 'Messages found',
      hasCursor: true,
      data: z.array(listedMessage),
    },
    async handle({ caller: { companyId }, query }) {
      const { from, to, ...filter } = query;
      const bounds = {
        fromMs: from === undefined ? undefined : Date.parse(from),
        toMs: to === undefined ? undefined : Date.parse(to),
      };
      const { messages, nextCursor } = await listMessages(deps, companyId, {
        ...filter,
        ...bounds,
      });
      return { data: messages.map((each) => describeListed(each.message, each.known)), nextCursor };
    },
  });
}

function getRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/webhook-messages/:messageId',
    versionedOnly,
    tag,
    summary: 'Get a message',
    answer: { status: 200, message: 'Message found', data: message },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { messageId = '' } }) {
      const found = await requireMessage(deps, companyId, messageId);
      const [oldestId = '', ...ids] = found.targets.map((to) => deliveryIdOf(found.id, to));
      const [[delivery], others, webhook] = await Promise.all([
        deps.deliveries.findMany(companyId, [oldestId]),
        deps.deliveries.outlinesOf(companyId, ids),
        deps.webhooks.findTarget(companyId, found.targets[0] ?? ''),
      ]);
      return { data: describeMessage(found, { webhook, delivery }, others) };
    },
  });
}

async function requireMessage(
  { messages }: HistoryDeps,
  companyId: string,
  messageId: string,
): Promise<Message> {
  const found = await messages.findOne(companyId, messageId);
  if (!found) throw notFound('message');
  return found;
}

function deliveriesRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/webhook-messages/:messageId/deliveries',
    versionedOnly,
    tag,
    summary: 'List the deliveries of a message, newest webhook first',
    query: deliveriesQuery,
    answer: {
      status: 200,
      message: 'Deliveries found',
      hasCursor: true,
      data: z.array(delivery),
    },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { messageId = '' }, query }) {
      const found = await requireMessage(deps, companyId, messageId);
      const { limit: size, cursor: after } = query;
      const newestFirst = [...found.targets].reverse();
      const rest = newestFirst.filter((id) => after === undefined || id < after);
      const page = await deliveriesOf(deps, found, rest.slice(0, size));
      const nextCursor = rest.length > size ? (rest[size - 1] ?? null) : null;
      return {
        data: page.map(({ source, sendable }) => describeDelivery(source, sendable)),
        nextCursor,
      };
    },
  });
}

function deliveryRoute(deps: HistoryDeps): Route {
  return route({
    method: 'get',
    path: '/deliveries/:deliveryId',
    versionedOnly,
    tag: 'Deliveries',
    summary: 'Get a delivery with every one of its attempts',
    answer: { status: 200, message: 'Delivery found', data: delivery },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { deliveryId = '' } }) {
      const found = await readDelivery(deps, companyId, deliveryId);
      if (!found) throw notFound('delivery');
      return { data: describeDelivery(found.source, found.sendable) };
    },
  });
}
