import { eventType, optionalFields, webhookSecret } from '@posthorn/domain/field-types.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import { auditedFields } from '@posthorn/domain/webhook-fields.ts';
import { z } from 'zod';
import { idempotencyOf } from '../accept/idempotency.ts';
import { notFound } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { readHealth } from '../history/health.ts';
import { route, type Route } from '../http/route.ts';
import { rotateSecret, sendTestMessage } from '../webhooks/webhooks.ts';
import { describeHold, graceSeconds } from './fields.ts';
import { deliverySchema, describeDelivery } from './message-responses.ts';
import { describeWebhook, healthSchema, shownTo, webhookSchema } from './webhook-responses.ts';

const tag = 'Webhooks';
const versionedOnly = true;

/** See docs/contract.md C13. */
export function webhookActionRoutes(gateway: Gateway): Route[] {
  return [rotateRoute(gateway), testWebhook(gateway), webhookHealth(gateway)];
}

const rotateBody = z
  .object({
    graceSeconds: graceSeconds.meta({
      description: 'How long the old secret signs beside the new one, in seconds',
    }),
    ...optionalFields({
      secret: webhookSecret.meta({
        description:
          'The new secret: `whsec_` and the base64 of 24 to 64 bytes. 32 random ones unless given',
      }),
    }),
  })
  .meta({ id: 'RotateSecret' });

function rotateRoute(gateway: Gateway): Route {
  return route({
    operationId: 'rotateWebhookSecret',
    method: 'post',
    path: '/webhooks/:webhookId/rotate-secret',
    versionedOnly,
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.secret_rotated', target: 'webhook' },
    tag,
    summary: 'Rotate the secret of a webhook',
    description:
      'During the grace period `webhook-signature` holds a signature of each secret. The HMAC header uses the new secret at once, unless the webhook has its own `hmacSecret`. Another rotation ends the grace period of the one before. With the `secret` that the webhook has already, nothing changes but a grace period that would last longer than `graceSeconds`.',
    body: rotateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'Secret rotated', data: webhookSchema },
    errors: ['not_found'],
    creation: { showsSecrets: true },
    async handle({ caller, params: { webhookId = '' }, body: { value }, newId, seed }) {
      const { companyId } = caller;
      const { secret: given, graceSeconds } = value;
      const secret = given ?? secretFromBytes(await seed());
      const rotation = { id: newId('rot'), companyId, webhookId, secret, graceSeconds };
      const { before, after } = await rotateSecret(gateway, rotation);
      const now = { ...auditedFields(after), graceSeconds };
      return {
        data: shownTo(caller, describeWebhook)(after),
        changed: { before: auditedFields(before), after: now },
      };
    },
  });
}

const testBody = z
  .object(
    optionalFields({
      eventType: eventType.meta({
        description:
          'The message has this event type of the catalogue, and its `example` as payload',
      }),
    }),
  )
  .meta({ id: 'TestWebhook' });

function testWebhook(gateway: Gateway): Route {
  return route({
    operationId: 'testWebhook',
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
    body: testBody,
    isBodyOptional: true,
    response: { status: 202, message: 'Test message accepted', data: deliverySchema },
    errors: ['not_found'],
    creation: {},
    async handle({ params: { webhookId = '' }, ...request }) {
      const key = request.header('idempotency-key') && testKeyOf(request.newId('msg'));
      const { caller, requestId, body, reserve, nextSlice } = request;
      const { companyId } = caller;
      const idempotency = idempotencyOf(key, body.bytes);
      const { eventType = null } = body.value;
      const of = { companyId, webhookId, eventType };
      const asked = { ...of, requestId, idempotency, reserve, nextSlice };
      const sent = await sendTestMessage(gateway, asked);
      return { data: describeDelivery(sent.source, sent.sentHeaders) };
    },
  });
}

/** The idempotency key of a test message. None of a client has a line feed. */
const testKeyOf = (id: string): string => `test\n${id}`;

function webhookHealth(gateway: Gateway): Route {
  return route({
    operationId: 'getWebhookHealth',
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
      const health = await readHealth(
        { ...gateway, holds: gateway.holdStates },
        companyId,
        webhookId,
      );
      if (!health) throw notFound('webhook');
      return { data: { ...health, held: describeHold(health.held) } };
    },
  });
}
