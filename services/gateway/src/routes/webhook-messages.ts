import type { Message } from '@posthorn/domain/message.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import { z } from 'zod';
import type { AcceptMessage } from '../accept-message.ts';
import { describeAccepted, describeMessage } from '../describe-message.ts';
import { notFound } from '../http/api-error.ts';
import { bodyRoute, type Route } from '../http/route.ts';
import type { ReadDeps } from '../read-delivery.ts';
import { idText } from './fields.ts';

const createBody = z
  .object({
    appId: idText.optional(),
    webhookId: idText.optional(),
    payload: z.record(z.string(), z.unknown(), 'must be a JSON object'),
  })
  .superRefine(
    ({ appId, webhookId }, context) => {
      if ((appId === undefined) !== (webhookId === undefined)) return;
      const message = appId === undefined ? 'is required, or webhookId' : 'excludes webhookId';
      context.addIssue({ code: 'custom', path: ['appId'], message });
    },
    // Also when the payload is wrong: all problems are told at once.
    { when: () => true },
  );

export interface MessageRouteDeps extends ReadDeps {
  accept: AcceptMessage['accept'];
  webhooks: WebhookStore;
  logger: Logger;
}

export function messageRoutes(deps: MessageRouteDeps): Route[] {
  return [
    bodyRoute({
      method: 'post',
      path: '/webhook-messages',
      body: createBody,
      async handle({ caller: { companyId }, requestId, body: { value, textOf } }) {
        const { appId, webhookId = '' } = value;
        const { message, webhooks } = await deps.accept({
          companyId,
          address: appId === undefined ? { kind: 'webhook', webhookId } : { kind: 'app', appId },
          payload: textOf('payload') ?? '',
          requestId,
        });
        const { id: messageId } = message;
        deps.logger.info({ requestId, messageId, deliveries: webhooks.length }, 'message accepted');
        return {
          status: 202,
          message: 'Message accepted',
          data: describeAccepted(message, webhooks),
        };
      },
    }),
    {
      method: 'get',
      path: '/webhook-messages/:messageId',
      versionedOnly: true,
      async handle({ caller: { companyId }, params: { messageId = '' } }) {
        const message = await deps.messages.findOne(companyId, messageId);
        if (!message) throw notFound('message');
        return { status: 200, message: 'Message found', data: await describe(deps, message) };
      },
    },
  ];
}

async function describe({ deliveries, webhooks }: MessageRouteDeps, message: Message) {
  const ids = message.targets.map((webhookId) => deliveryIdOf(message.id, webhookId));
  const [found, oldest] = await Promise.all([
    deliveries.findMany(message.companyId, ids),
    webhooks.findOne(message.companyId, message.targets[0] ?? ''),
  ]);
  return describeMessage(message, found, oldest);
}
