import { fieldsOfWebhook } from '@posthorn/domain/audit/webhook-fields.ts';
import { z } from 'zod';
import type { ReadHealth } from '../../../history/read-health.ts';
import { notFound } from '../../../http/api-error.ts';
import { deliverySchema, describeDelivery } from '../../../http/responses/delivery.ts';
import { healthSchema } from '../../../http/responses/health.ts';
import { shownTo } from '../../../api-keys/shown-to.ts';
import { describeWebhook, webhookSchema } from '../../../http/responses/webhook.ts';
import { NO_FIELDS, route, type Route } from '../../../http/request/route.ts';
import type { RotateSecret } from '../../../webhooks/rotate-secret.ts';
import type { SendTestMessage } from '../../../webhooks/send-test-message.ts';
import { graceSeconds } from '../fields.ts';

export interface WebhookActionDeps {
  rotateSecret: RotateSecret;
  sendTestMessage: SendTestMessage;
  readHealth: ReadHealth;
}

const tag = 'Webhooks';
const versionedOnly = true;

/** See docs/contract.md C13. */
export function webhookActionRoutes(deps: WebhookActionDeps): Route[] {
  return [rotateSecret(deps), testWebhook(deps), webhookHealth(deps)];
}

const rotateBody = z
  .object({
    graceSeconds: graceSeconds.meta({
      description: 'How long the old secret signs beside the new one, in seconds',
    }),
  })
  .meta({ id: 'RotateSecret' });

function rotateSecret(deps: WebhookActionDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks/:webhookId/rotate-secret',
    versionedOnly,
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.secret_rotated', target: 'webhook' },
    tag,
    summary: 'Give a webhook a new secret',
    description:
      'During the grace period `webhook-signature` holds a signature of each secret. The HMAC header uses the new secret at once, unless the webhook has its own `hmacSecret`. Another rotation ends the grace period of the one before.',
    body: rotateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'Secret rotated', data: webhookSchema },
    errors: ['not_found'],
    async handle({ caller, params: { webhookId = '' }, body: { value } }) {
      const { companyId } = caller;
      const { graceSeconds } = value;
      const { before, after } = await deps.rotateSecret({ companyId, webhookId, graceSeconds });
      const now = { ...fieldsOfWebhook(after), graceSeconds };
      return {
        data: shownTo(caller, describeWebhook)(after),
        changed: { before: fieldsOfWebhook(before), after: now },
      };
    },
  });
}

function testWebhook(deps: WebhookActionDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks/:webhookId/test',
    versionedOnly,
    scope: 'messages:write',
    portal: 'manage',
    audit: { action: 'webhook.tested', target: 'webhook' },
    tag,
    summary: 'Send a test message to a webhook',
    description:
      'Sends a small message and returns its delivery. `GET /api/v1/deliveries/{id}` shows how it ended.',
    body: NO_FIELDS,
    isBodyOptional: true,
    response: { status: 202, message: 'Test message accepted', data: deliverySchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' }, requestId, takeTurn }) {
      const sent = await deps.sendTestMessage({ companyId, webhookId, requestId, takeTurn });
      return { data: describeDelivery(sent.source, sent.sentHeaders) };
    },
  });
}

function webhookHealth(deps: WebhookActionDeps): Route {
  return route({
    method: 'get',
    path: '/webhooks/:webhookId/health',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get the health of a webhook',
    description:
      'Examines the attempts of the newest messages of the webhook, at most 200 messages.',
    response: { status: 200, message: 'Health found', data: healthSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      const health = await deps.readHealth(companyId, webhookId);
      if (!health) throw notFound('webhook');
      return { data: health };
    },
  });
}
