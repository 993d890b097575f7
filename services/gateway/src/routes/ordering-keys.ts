import { orderingKey } from '@posthorn/domain/field-types.ts';
import type { ListedSequence } from '@posthorn/platform/mongo/messages/sequence-queries.ts';
import { z } from 'zod';
import { invalidRequest } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import { type KeyPosition, listOrderingKeys, skipOrderingKey } from '../webhooks/ordering-keys.ts';
import { exampleId, idField, idText, isoTime, limit, timeField } from './fields.ts';

const tag = 'Webhooks';
const path = '/webhooks/:webhookId/ordering-keys';

/** See docs/contract.md C29.10 and C29.11. */
export function orderingKeyRoutes(gateway: Gateway): Route[] {
  return [listRoute(gateway), skipRoute(gateway)];
}

const STATES = ['blocked', 'waiting'] as const;

const state = z.enum(STATES, `must be one of ${STATES.join(', ')}`);

const HEAD_DESCRIPTION = 'Its oldest delivery that has not ended';

const orderingKeySchema = z
  .object({
    orderingKey: z.string(),
    state: state.meta({
      description:
        '`blocked`: the head is exhausted, and those behind it wait until it is skipped or sent again with success. `waiting`: the head is pending',
    }),
    headDeliveryId: idField('dlv').meta({ description: HEAD_DESCRIPTION }),
    headMessageId: idField('msg'),
    headStatus: z.enum(['pending', 'exhausted']),
    nextAttemptAt: timeField.nullable().meta({ description: 'Of the head' }),
    waiting: z.int().meta({ description: 'Deliveries behind the head, counted up to 1,000' }),
    since: timeField.meta({ description: 'Since when deliveries of the key wait' }),
  })
  .meta({ id: 'OrderingKey' });

const shape = orderingKeySchema.shape;

const skippedKeySchema = z
  .object({
    orderingKey: shape.orderingKey,
    state: z.enum([...STATES, 'free']).meta({
      description:
        'That of the key in the list; `free` when it is not listed any more, and the fields behind it are null',
    }),
    headDeliveryId: shape.headDeliveryId.nullable(),
    headMessageId: shape.headMessageId.nullable(),
    headStatus: shape.headStatus.nullable(),
    nextAttemptAt: shape.nextAttemptAt,
    waiting: shape.waiting.nullable(),
    since: shape.since.nullable(),
  })
  .meta({ id: 'SkippedOrderingKey' });

/** The last key of a page: its state, since when it waits, and its digest. */
const CURSOR = /^(blocked|waiting)\.(\d{1,15})\.([A-Za-z0-9_-]{22})$/;

const listQuery = z.object({
  state: state.optional(),
  limit: limit(100, 50),
  cursor: z.string().regex(CURSOR, 'is not a cursor of this list').optional().meta({
    description: '`nextCursor` of the previous page',
    example: 'blocked.1767225600000.rWbkS1NqVCmWzjNvUdBFNg',
  }),
});

type ListQuery = z.infer<typeof listQuery>;

function positionOf(webhookId: string, { state: wanted, cursor }: ListQuery) {
  const [, from, sinceMs, digest = ''] = CURSOR.exec(cursor ?? '') ?? [];
  if (from === undefined) return undefined;
  if (wanted !== undefined && from !== wanted) {
    throw invalidRequest([{ path: 'cursor', message: 'is not a cursor of this list' }]);
  }
  const after = { id: `${webhookId}/${digest}`, sinceMs: Number(sinceMs) };
  return { state: state.parse(from), after };
}

function cursorOf({ state: of, after: { id, sinceMs } }: KeyPosition): string {
  return `${of}.${sinceMs}.${id.slice(id.indexOf('/') + 1)}`;
}

function listRoute(gateway: Gateway): Route {
  return route({
    operationId: 'listOrderingKeys',
    method: 'get',
    path,
    versionedOnly: true,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List the ordering keys whose deliveries wait, blocked ones first',
    description:
      'Each kind oldest first. A key whose deliveries follow each other without a failure is not listed. A page may hold fewer entries than `limit`, or none, although `nextCursor` is not null.',
    query: listQuery,
    response: {
      status: 200,
      message: 'Ordering keys found',
      hasCursor: true,
      data: z.array(orderingKeySchema),
    },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' }, query }) {
      const asked = { state: query.state, limit: query.limit, from: positionOf(webhookId, query) };
      const { keys, next } = await listOrderingKeys(gateway, { companyId, webhookId }, asked);
      return {
        data: keys.map(describe),
        nextCursor: next && cursorOf(next),
      };
    },
  });
}

const skipBody = z
  .object({
    orderingKey,
    deliveryId: idText('dlv').meta({
      description: 'The exhausted delivery at which the key is blocked: `headDeliveryId`',
      example: exampleId('dlv'),
    }),
  })
  .meta({ id: 'SkipOrderingKey' });

function skipRoute(gateway: Gateway): Route {
  return route({
    operationId: 'skipOrderingKey',
    method: 'post',
    path: `${path}/skip`,
    versionedOnly: true,
    scope: 'messages:write',
    portal: 'controlDeliveries',
    audit: { action: 'webhook.ordering_key_skipped', target: 'webhook' },
    tag,
    summary: 'Go on behind the exhausted delivery of an ordering key',
    description:
      'The next delivery of the key begins within a second. The exhausted one stays so, and may be sent again.',
    body: skipBody,
    response: { status: 200, message: 'Ordering key skipped', data: skippedKeySchema },
    errors: ['not_found', 'not_blocked'],
    async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
      const key = await skipOrderingKey(gateway, { companyId, webhookId, ...value });
      const { deliveryId } = value;
      return {
        data: key ? describe(key) : { ...FREE, orderingKey: value.orderingKey },
        // The key may name a customer.
        changed: { before: {}, after: { deliveryId } },
      };
    },
  });
}

const FREE = {
  state: 'free',
  headDeliveryId: null,
  headMessageId: null,
  headStatus: null,
  nextAttemptAt: null,
  waiting: null,
  since: null,
} as const;

function describe(key: ListedSequence): z.infer<typeof orderingKeySchema> {
  const { headDeliveryId, headMessageId, headStatus, nextAttemptAtMs, waiting } = key;
  return {
    orderingKey: key.orderingKey,
    state: key.state,
    headDeliveryId,
    headMessageId,
    headStatus,
    nextAttemptAt: nextAttemptAtMs === null ? null : isoTime(nextAttemptAtMs),
    waiting,
    since: isoTime(key.sinceMs),
  };
}
