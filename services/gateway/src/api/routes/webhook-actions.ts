import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import type { AcceptMessage } from '../../accept/accept-message.ts';
import { delivery, describeDelivery } from '../../http/answers/delivery.ts';
import { health } from '../../http/answers/health.ts';
import { describeWebhook, webhook } from '../../http/answers/webhook.ts';
import type { ChangeWebhook } from '../../webhooks/change-webhook.ts';
import { notFound } from '../../http/api-error.ts';
import { NO_FIELDS, route, type Route } from '../../http/route.ts';
import { newSecret } from '../../webhooks/new-secret.ts';
import { readDelivery, type ReadDeps } from '../../history/read-delivery.ts';
import type { ReadHealth } from '../../history/read-health.ts';

export interface WebhookActionDeps extends ReadDeps {
  nowMs: () => number;
  changeWebhook: ChangeWebhook;
  accept: AcceptMessage['accept'];
  readHealth: ReadHealth;
}

const tag = 'Webhooks';
const versionedOnly = true;
const WEEK_SECONDS = 604_800;

export function webhookActionRoutes(deps: WebhookActionDeps): Route[] {
  return [rotateSecret(deps), testWebhook(deps), webhookHealth(deps)];
}

const rotateBody = z
  .object({
    graceSeconds: z
      .int(`must be a whole number from 0 to ${WEEK_SECONDS}`)
      .min(0, `must be a whole number from 0 to ${WEEK_SECONDS}`)
      .max(WEEK_SECONDS, `must be a whole number from 0 to ${WEEK_SECONDS}`)
      .default(86_400)
      .meta({ description: 'How long the old secret signs beside the new one' }),
  })
  .meta({ id: 'RotateSecret' });

function rotateSecret(deps: WebhookActionDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks/:webhookId/rotate-secret',
    versionedOnly,
    tag,
    summary: 'Give a webhook a new secret',
    description:
      'During the grace both secrets sign `webhook-signature`; the HMAC of the document uses the new one at once, unless the webhook has an `hmacSecret` of its own. A further rotation ends the grace of the one before.',
    body: rotateBody,
    isBodyOptional: true,
    answer: { status: 200, message: 'Secret rotated', data: webhook },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
      const expiresAtMs = deps.nowMs() + value.graceSeconds * 1_000;
      const secret = newSecret();
      const changed = await deps.changeWebhook({ companyId, webhookId }, (seen) =>
        rotated(seen, secret, value.graceSeconds > 0 ? expiresAtMs : null),
      );
      return { data: describeWebhook(changed) };
    },
  });
}

function rotated(seen: Webhook, secret: string, expiresAtMs: number | null): WebhookChanges {
  const { authMethod, secret: old } = seen;
  const followsSecret = authMethod.method === 'hmac' && authMethod.hmacSecret === old;
  return {
    secret,
    previousSecret: expiresAtMs === null ? null : { secret: old, expiresAtMs },
    ...(followsSecret && { authMethod: { ...authMethod, hmacSecret: secret } }),
  };
}

function testWebhook(deps: WebhookActionDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks/:webhookId/test',
    versionedOnly,
    tag,
    summary: 'Send a small test message to a webhook',
    description: 'Answers its delivery; what became of it is at `GET /api/v1/deliveries/{id}`.',
    body: NO_FIELDS,
    isBodyOptional: true,
    answer: { status: 202, message: 'Test message accepted', data: delivery },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' }, requestId }) {
      const sentAt = new Date(deps.nowMs()).toISOString();
      const accepted = await deps.accept({
        companyId,
        address: { kind: 'webhook', webhookId },
        eventType: null,
        requestId,
        idempotency: null,
        isTest: true,
        payload: JSON.stringify({ type: 'webhook.test', webhookId, sentAt }),
      });
      const deliveryId = accepted?.deliveries[0]?.id ?? '';
      const found = await readDelivery(deps, companyId, deliveryId);
      if (!found) throw notFound('webhook');
      return { data: describeDelivery(found.source, found.sendable) };
    },
  });
}

function webhookHealth({ readHealth }: WebhookActionDeps): Route {
  return route({
    method: 'get',
    path: '/webhooks/:webhookId/health',
    versionedOnly,
    tag,
    summary: 'See how deliveries to a webhook fare',
    description: 'Looks at the attempts of its newest messages, at most 200.',
    answer: { status: 200, message: 'Health found', data: health },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      const found = await readHealth(companyId, webhookId);
      if (!found) throw notFound('webhook');
      return { data: found };
    },
  });
}
