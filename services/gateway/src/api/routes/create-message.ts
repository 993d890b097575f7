import { ImpossibleError } from '@posthorn/domain/required.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { z } from 'zod';
import { KEPT_HOURS } from '../../accept/idempotency/idempotency-key.ts';
import type { IdempotentAccept, KeyedRequest } from '../../accept/idempotency/idempotent-accept.ts';
import type { Address } from '../../accept/targets/resolve-targets.ts';
import { createdMessageSchema } from '../../http/responses/message.ts';
import { route, type ApiRequest, type RequestQueue, type Route } from '../../http/request/route.ts';
import { idText } from './fields.ts';
import { eventType } from './webhooks/webhook-fields/webhook-fields.ts';

const createBody = z
  .object({
    appId: idText('app').optional(),
    webhookId: idText('wh').optional(),
    payload: z.record(z.string(), z.unknown(), 'must be a JSON object').meta({
      description: 'Delivered byte for byte as it is written here',
      example: { order: 17, total: '12.50' },
    }),
    eventType: eventType.optional(),
  })
  .superRefine(
    ({ appId, webhookId }, context) => {
      if ((appId === undefined) !== (webhookId === undefined)) return;
      const message =
        appId === undefined
          ? 'is required, or webhookId'
          : 'must not be given together with webhookId';
      context.addIssue({ code: 'custom', path: ['appId'], message });
    },
    // Runs even if the payload is wrong: one response reports every problem.
    { when: () => true },
  )
  .meta({
    id: 'CreateMessage',
    oneOf: [{ required: ['appId'] }, { required: ['webhookId'] }],
  });

const idempotencyKey = z
  .string()
  .regex(/^[\x20-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')
  .meta({ example: 'order-17-paid' });

export interface CreateMessageDeps {
  acceptIdempotent: IdempotentAccept;
  acceptQueue: RequestQueue;
  logger: Logger;
}

export function createMessageRoute({
  acceptIdempotent,
  acceptQueue,
  logger,
}: CreateMessageDeps): Route {
  return route({
    method: 'post',
    path: '/webhook-messages',
    scope: 'messages:write',
    queue: acceptQueue,
    tag: 'Webhook messages',
    summary: 'Send a message',
    description:
      'Sends a message to the webhooks of an app that select its event type, or to one webhook. The response comes once the message is stored durably; deliveries follow.',
    headers: [
      {
        name: 'Idempotency-Key',
        description: `Makes the request safe to repeat for ${KEPT_HOURS} hours: a repeat with the same body gets the first response again, with \`Idempotency-Replayed: true\``,
        schema: idempotencyKey,
      },
    ],
    body: createBody,
    response: { status: 202, message: 'Message accepted', data: createdMessageSchema },
    errors: ['not_found', 'quota_exceeded', 'idempotency_key_running', 'idempotency_key_reused'],
    async handle(request) {
      const { requestId } = request;
      const { data, isReplayed } = await acceptIdempotent(keyedRequest(request));
      if (isReplayed) return { data, headers: { 'Idempotency-Replayed': 'true' } };
      // At debug level only: a log line for each message took 10 % of the CPU at 650 messages/s.
      if (logger.isLevelEnabled('debug')) {
        const { id: messageId, deliveries } = data;
        logger.debug({ requestId, messageId, deliveries: deliveries.length }, 'message accepted');
      }
      return { data };
    },
  });
}

type CreateRequest = ApiRequest<z.infer<typeof createBody>, Record<string, never>>;

function keyedRequest(request: CreateRequest): KeyedRequest {
  const { requestId, body, header, reserve, takeTurn } = request;
  const { companyId } = request.caller;
  const { appId, webhookId, eventType: type = null } = body.value;
  return {
    key: header('idempotency-key'),
    bytes: body.bytes,
    reserve,
    takeTurn,
    message: {
      companyId,
      address: addressOf({ appId, webhookId }, type),
      eventType: type,
      payload: present(body.textOf('payload'), 'payload'),
      requestId,
      traceparent: traceparentOf(header('traceparent')),
    },
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
