import { eventType, externalId, messageTag } from '@posthorn/domain/field-types.ts';
import {
  EXCLUSIVE_FIELDS,
  EXCLUSIVE_PROBLEM,
  givenIn,
  messageRequestShape,
} from '@posthorn/domain/message-fields.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { z } from 'zod';
import type { NewMessage } from '../accept/accept-message.ts';
import { idempotencyOf, keyWithin } from '../accept/idempotency.ts';
import type { Address } from '../accept/targets.ts';
import type { Gateway } from '../gateway.ts';
import { listDeliveries, readDelivery } from '../history/deliveries.ts';
import { erasePayload, eraseResponses } from '../history/erase.ts';
import { listMessages, readMessage } from '../history/messages.ts';
import { invalidRequest, notFound } from '../api-error.ts';
import { type ApiRequest, IDEMPOTENCY_KEY, NO_FIELDS, route, type Route } from '../http/route.ts';
import type { Caller } from '../keys/rights.ts';
import {
  createdMessageSchema,
  deliverySchema,
  deliveryStatusSchema,
  describeAccepted,
  describeDelivery,
  describeListed,
  describeMessage,
  listedMessageSchema,
  messageSchema,
  messageStatusSchema,
} from './message-responses.ts';
import { cursor, idText, isoTime, limit, optionalFields, timeField, timeText } from './fields.ts';

const listQuery = z.object({
  appId: idText('app').optional(),
  webhookId: idText('wh').optional(),
  eventType: eventType.optional().meta({ description: 'Only messages of exactly this type' }),
  tag: messageTag.optional().meta({ description: 'Only messages with exactly this tag' }),
  externalId: externalId.optional().meta({ description: 'Only messages with this external id' }),
  status: messageStatusSchema.optional(),
  deliveryStatus: deliveryStatusSchema.optional().meta({
    description:
      'Only messages whose delivery to `webhookId` has this status. `status` is that of the message, which may have deliveries to other webhooks',
  }),
  since: timeText.optional().meta({ description: 'Created at this time or later' }),
  until: timeText.optional().meta({ description: 'Created at this time or earlier' }),
  limit: limit(100, 50),
  cursor: cursor('msg').optional(),
});

const deliveriesQuery = z.object({ limit: limit(100, 50), cursor: cursor('wh').optional() });

const versionedOnly = true;
const tag = 'Webhook messages';

/** See docs/contract.md C7, C8 and C12. */
export function messageRoutes(gateway: Gateway): Route[] {
  return [
    createRoute(gateway),
    listRoute(gateway),
    getRoute(gateway),
    deliveriesRoute(gateway),
    deliveryRoute(gateway),
    erasePayloadRoute(gateway),
    eraseResponsesRoute(gateway),
  ];
}

function listRoute(gateway: Gateway): Route {
  return route({
    operationId: 'listMessages',
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
    async handle({ caller, query, nextSlice }) {
      const { since, until, ...filter } = query;
      if (filter.deliveryStatus !== undefined && filter.webhookId === undefined) {
        throw invalidRequest([{ path: 'deliveryStatus', message: 'needs webhookId' }]);
      }
      const { messages, nextCursor } = await listMessages(
        { ...gateway, nextSlice },
        caller.companyId,
        {
          ...filter,
          appId: filter.appId ?? appOfList(caller, filter.webhookId),
          fromMs: since === undefined ? undefined : Date.parse(since),
          toMs: until === undefined ? undefined : Date.parse(until),
        },
      );
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

function getRoute(gateway: Gateway): Route {
  return route({
    operationId: 'getMessage',
    method: 'get',
    path: '/webhook-messages/:messageId',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get a message',
    response: { status: 200, message: 'Message found', data: messageSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { messageId = '' }, nextSlice }) {
      const read = await readMessage({ ...gateway, nextSlice }, companyId, messageId);
      const { message, oldest, deliveries } = read;
      return { data: describeMessage(message, oldest, deliveries) };
    },
  });
}

function deliveriesRoute(gateway: Gateway): Route {
  return route({
    operationId: 'listMessageDeliveries',
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
    async handle({ caller: { companyId }, params: { messageId = '' }, query, nextSlice }) {
      const page = await listDeliveries(gateway, { companyId, messageId, ...query });
      await nextSlice();
      return {
        data: page.deliveries.map(({ source, sentHeaders }) =>
          describeDelivery(source, sentHeaders),
        ),
        nextCursor: page.nextCursor,
      };
    },
  });
}

function deliveryRoute(gateway: Gateway): Route {
  return route({
    operationId: 'getDelivery',
    method: 'get',
    path: '/deliveries/:deliveryId',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag: 'Deliveries',
    summary: 'Get a delivery and its attempts',
    response: { status: 200, message: 'Delivery found', data: deliverySchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { deliveryId = '' }, nextSlice }) {
      const found = await readDelivery({ ...gateway, nextSlice }, companyId, deliveryId);
      if (!found) throw notFound('delivery');
      return { data: describeDelivery(found.source, found.sentHeaders) };
    },
  });
}

const erased = z.literal(true);

const erasing = {
  method: 'post',
  versionedOnly,
  scope: 'messages:write',
  body: NO_FIELDS,
  isBodyOptional: true,
  errors: ['not_found'],
} as const;

/** See docs/contract.md C7.13 and C7.14. */
function erasePayloadRoute(gateway: Gateway): Route {
  return route({
    ...erasing,
    operationId: 'erasePayload',
    path: '/webhook-messages/:messageId/erase-payload',
    audit: { action: 'message.payload_erased', target: 'message' },
    tag,
    summary: 'Erase the payload of a message',
    description:
      'Erases the payload and the stored responses of the endpoints, for good. Pending deliveries are cancelled. The message stays in the history with `payload: null`. A repeat changes nothing.',
    response: {
      status: 200,
      message: 'Payload erased',
      data: z
        .object({
          erased,
          kafkaUntil: timeField.nullable().meta({
            description: 'Until when records in Kafka have the payload; null when none has it',
          }),
        })
        .meta({ id: 'ErasedPayload' }),
    },
    async handle({ caller: { companyId }, params: { messageId = '' }, nextSlice }) {
      const deps = { ...gateway, nextSlice };
      const { kafkaUntilMs } = await erasePayload(deps, companyId, messageId);
      const kafkaUntil = kafkaUntilMs === null ? null : isoTime(kafkaUntilMs);
      return { data: { erased: true, kafkaUntil } };
    },
  });
}

/** See docs/contract.md C12.9. */
function eraseResponsesRoute(gateway: Gateway): Route {
  return route({
    ...erasing,
    operationId: 'eraseResponses',
    path: '/deliveries/:deliveryId/erase-responses',
    audit: { action: 'delivery.responses_erased', target: 'delivery' },
    tag: 'Deliveries',
    summary: 'Erase the responses of a delivery',
    description:
      'Erases bodies and headers of the responses that the delivery has so far. Status codes, outcomes and durations stay. Later attempts store theirs again.',
    response: {
      status: 200,
      message: 'Responses erased',
      data: z.object({ erased }).meta({ id: 'ErasedResponses' }),
    },
    async handle({ caller: { companyId }, params: { deliveryId = '' }, nextSlice }) {
      await eraseResponses({ ...gateway, nextSlice }, companyId, deliveryId);
      return { data: { erased: true } };
    },
  });
}

/** In JSON Schema: null means the same as a field that is left out. */
function given(...names: readonly string[]): object {
  const properties = Object.fromEntries(names.map((name) => [name, { not: { type: 'null' } }]));
  return { required: names, properties };
}

/** The fields of a message that is sent. */
export const messageFields = {
  ...optionalFields({
    appId: idText('app'),
    webhookId: idText('wh'),
    eventType,
    ...messageRequestShape,
  }),
  payload: z.record(z.string(), z.unknown(), 'must be a JSON object').meta({
    description: 'Delivered byte for byte as it is written here',
    example: { order: 17, total: '12.50' },
  }),
};

/** Names a schema with these fields. A message has exactly one of `appId` and `webhookId`, and not both `EXCLUSIVE_FIELDS`. */
export function withOneAddress<Shape extends typeof messageFields>(
  fields: z.ZodObject<Shape>,
  id: string,
): z.ZodObject<Shape> {
  return fields
    .superRefine(
      (message, context) => {
        const fields = message as Partial<Record<string, unknown>>;
        const { appId, webhookId } = fields;
        if (EXCLUSIVE_FIELDS.every((name) => fields[name] !== undefined)) {
          context.addIssue({ code: 'custom', path: ['deliverAt'], message: EXCLUSIVE_PROBLEM });
        }
        if ((appId === undefined) !== (webhookId === undefined)) return;
        const problem =
          appId === undefined
            ? 'is required, or webhookId'
            : 'must not be given together with webhookId';
        context.addIssue({ code: 'custom', path: ['appId'], message: problem });
      },
      // Runs even if the payload is wrong: one response reports every problem.
      { when: () => true },
    )
    .meta({
      id,
      // Not `oneOf`: generators of clients make two classes of it, without the other fields.
      if: given('appId'),
      then: { properties: { webhookId: { type: 'null' } } },
      else: given('webhookId'),
      not: given(...EXCLUSIVE_FIELDS),
    });
}

const createBody = withOneAddress(z.object(messageFields), 'CreateMessage');

function createRoute({ acceptOne, hasRoomToAccept, logger }: Gateway): Route {
  return route({
    operationId: 'createMessage',
    method: 'post',
    path: '/webhook-messages',
    scope: 'messages:write',
    queue: { hasRoom: hasRoomToAccept },
    tag: 'Webhook messages',
    summary: 'Send a message',
    description:
      'Sends a message to the webhooks of an app that select its event type, or to one webhook. The response comes once the message is stored durably; deliveries follow.',
    headers: [IDEMPOTENCY_KEY],
    body: createBody,
    response: { status: 202, message: 'Message accepted', data: createdMessageSchema },
    errors: [
      ...(['not_found', 'quota_exceeded', 'event_type_unknown', 'payload_invalid'] as const),
      ...(['idempotency_key_running', 'idempotency_key_reused'] as const),
    ],
    async handle(request) {
      const { requestId, body, header } = request;
      const asked = newMessageOf(request, body, header('idempotency-key'));
      const { message, shown, isReplayed } = await acceptOne(asked, request);
      const data = await describeAccepted(message, shown);
      if (isReplayed) return { data, headers: { 'Idempotency-Replayed': 'true' } };
      // At debug level only: a log line for each message took 10 % of the CPU at 650 messages/s.
      if (logger.isLevelEnabled('debug')) {
        const { id: messageId, targets } = message;
        logger.debug({ requestId, messageId, deliveries: targets.length }, 'message accepted');
      }
      return { data };
    },
  });
}

type CreateRequest = ApiRequest<z.infer<typeof createBody>, Record<string, never>>;

/** Returns the message that a body, or an entry of a batch, asks for. Its repeat has the same `key` and the same bytes. */
export function newMessageOf(
  { caller, requestId, header }: Pick<CreateRequest, 'caller' | 'requestId' | 'header'>,
  { value, textOf, bytes }: CreateRequest['body'],
  key: string | undefined,
): NewMessage {
  const { appId, webhookId, eventType: type = null } = value;
  return {
    companyId: caller.companyId,
    address: addressOf({ appId, webhookId }, type),
    eventType: type,
    payload: present(textOf('payload'), 'payload'),
    requestId,
    given: givenIn(value),
    idempotency: idempotencyOf(keyWithin(caller.appId, key), bytes),
    traceparent: traceparentOf(header('traceparent')),
  };
}

function addressOf(
  { appId, webhookId }: { appId: string | undefined; webhookId: string | undefined },
  eventType: string | null,
): Address {
  return appId === undefined
    ? { kind: 'webhook', webhookId: present(webhookId, 'webhookId') }
    : { kind: 'app', appId, eventType };
}

function present<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw new ImpossibleError(`${name} is missing in a checked request`);
  return value;
}
