import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { z } from 'zod';
import type { AcceptOnce } from '../../accept/idempotent-accept.ts';
import { createdMessage } from '../../http/answers/message.ts';
import { route, type ApiRequest, type Route } from '../../http/route.ts';
import { idText } from './fields.ts';
import { eventType } from './webhook-fields.ts';

const createBody = z
  .object({
    appId: idText('app').optional(),
    webhookId: idText('wh').optional(),
    payload: z
      .record(z.string(), z.unknown(), 'must be a JSON object')
      .meta({ description: 'Travels byte for byte', example: { order: 17, total: '12.50' } }),
    eventType: eventType.optional(),
  })
  .superRefine(
    ({ appId, webhookId }, context) => {
      if ((appId === undefined) !== (webhookId === undefined)) return;
      const message = appId === undefined ? 'is required, or webhookId' : 'excludes webhookId';
      context.addIssue({ code: 'custom', path: ['appId'], message });
    },
    // Also when the payload is wrong: all problems are told at once.
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
  acceptOnce: AcceptOnce;
  logger: Logger;
}

export function createMessageRoute({ acceptOnce, logger }: CreateMessageDeps): Route {
  return route({
    method: 'post',
    path: '/webhook-messages',
    tag: 'Webhook messages',
    summary: 'Send a message',
    description:
      'To every webhook of an app that wants its event type, or to one webhook. The answer comes when the message is stored for good; deliveries follow.',
    headers: [
      {
        name: 'Idempotency-Key',
        description:
          'Makes repeats safe for 24 hours: the same body gets the first answer again, with `Idempotency-Replayed: true`.',
        schema: idempotencyKey,
      },
    ],
    body: createBody,
    answer: { status: 202, message: 'Message accepted', data: createdMessage },
    errors: ['not_found', 'idempotency_key_running', 'idempotency_key_reused'],
    async handle(request) {
      const { requestId } = request;
      const { data, isReplayed } = await acceptOnce(keyedRequest(request));
      if (isReplayed) return { data, headers: { 'Idempotency-Replayed': 'true' } };
      // A line for each message is for looking closely; at 650/s it took 10 % of the process.
      if (logger.isLevelEnabled('debug')) {
        const { id: messageId, deliveries } = data;
        logger.debug({ requestId, messageId, deliveries: deliveries.length }, 'message accepted');
      }
      return { data };
    },
  });
}

type CreateRequest = ApiRequest<z.infer<typeof createBody>, Record<string, never>>;

function keyedRequest({ caller: { companyId }, requestId, body, header }: CreateRequest) {
  const { appId, webhookId = '', eventType: type = null } = body.value;
  return {
    key: header('idempotency-key'),
    bytes: body.bytes,
    message: {
      companyId,
      address:
        appId === undefined
          ? { kind: 'webhook' as const, webhookId }
          : { kind: 'app' as const, appId, eventType: type },
      eventType: type,
      payload: body.textOf('payload') ?? '',
      requestId,
      traceparent: traceparentOf(header('traceparent')),
    },
  };
}
