import { describe, expect, test } from '@jest/globals';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Attempt, Delivery, DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import type { AuthMethod, Header } from '@posthorn/domain/webhook.ts';
import type { FoundWebhook, OpenedWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { createHmac } from 'node:crypto';
import { openedWebhook, unopenedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { outlineBefore } from '../history/messages.ts';
import { headersOf, UNKNOWN_HEADERS } from '../history/sent-headers.ts';
import {
  DELIVERIES_OF_A_ROUND,
  describeAccepted,
  describeDelivery,
  describeMessage,
} from './message-responses.ts';

describe('delivery', () => {
  const messageId = 'msg_01hf2m6q7xabcdefghjkmnpqrs';

  function delivery(attemptCount: number, attempts: Attempt[]): Delivery {
    return {
      id: deliveryIdOf(messageId, 'wh_1'),
      messageId,
      webhookId: 'wh_1',
      companyId: 'comp_a',
      appId: null,
      status: 'exhausted',
      reason: null,
      attemptCount,
      attempts,
      nextAttemptAtMs: null,
      waiting: null,
      waitingSinceMs: null,
      createdAtMs: 1,
      updatedAtMs: 2,
    };
  }

  const attempt = (number: number, startedAtMs: number): Attempt => ({
    id: `att_${number}`,
    number,
    trigger: 'retry',
    outcome: 'timeout',
    statusCode: null,
    response: null,
    responseHeaders: [],
    startedAtMs,
    durationMs: 1,
  });

  test('the attempt count includes attempts that are no longer kept', () => {
    const shown = describeDelivery(delivery(1_001, []), UNKNOWN_HEADERS);
    expect(shown).toMatchObject({ attemptCount: 1_001, attempts: [] });
  });

  test('an attempt from before the last change of the webhook shows no headers', () => {
    const headers = [{ key: 'X-New', value: '1' }];
    const source = delivery(2, [attempt(1, 99), attempt(2, 100)]);
    const { attempts } = describeDelivery(source, { headers, sinceMs: 100 });
    expect(attempts.map((each) => each.headers)).toEqual([[], headers]);
  });

  test('an attempt without an access token shows why, and others show null', () => {
    const reason = 'the token server answered 401: invalid_client';
    const failed = { ...attempt(2, 2), outcome: 'token_failed' as const, failureReason: reason };
    const { attempts } = describeDelivery(delivery(2, [attempt(1, 1), failed]), UNKNOWN_HEADERS);
    expect(attempts.map((each) => each.failureReason)).toEqual([null, reason]);
  });
});

describe('message', () => {
  const CREATED_MS = Date.UTC(2024, 0, 2, 3, 4, 5, 678);
  const CREATED = '2024-01-02T03:04:05.678Z';
  const MASK = '********';
  const secret = secretFromBytes(Buffer.alloc(32, 7));
  const message: Message = {
    id: 'msg_01hf2m6q7xabcdefghjkmnpqrs',
    companyId: 'comp_1',
    appId: 'app_1',
    payload: '{"n": 1e400}',
    targets: ['wh_1', 'wh_2'],
    publisherId: 'gw_1',
    eventType: null,
    disabledTargets: new Set<string>(),
    idempotency: null,
    requestId: 'request-1',
    createdAtMs: CREATED_MS,
  };
  const hmac: AuthMethod = { method: 'hmac', hmacHeader: 'X-Sig', hmacSecret: 'own' };

  function webhook(id: string, authMethod = hmac, customHeaders: Header[] = []): OpenedWebhook {
    return openedWebhook(1, { id, secret, authMethod, customHeaders });
  }

  function delivery(webhookId: string, status: DeliveryStatus, statusCodes: number[]): Delivery {
    const id = deliveryIdOf(message.id, webhookId);
    return {
      id,
      messageId: message.id,
      webhookId,
      companyId: 'comp_1',
      appId: 'app_1',
      status,
      reason: null,
      nextAttemptAtMs: null,
      waiting: null,
      waitingSinceMs: null,
      createdAtMs: CREATED_MS,
      attemptCount: statusCodes.length,
      updatedAtMs: CREATED_MS + 1_000,
      attempts: statusCodes.map((statusCode, index) => ({
        id: attemptIdOf(id, index + 1),
        number: index + 1,
        trigger: 'retry',
        statusCode,
        outcome: 'http_5xx',
        response: `response ${index + 1}`,
        responseHeaders: [],
        startedAtMs: CREATED_MS + 500,
        durationMs: 500,
      })),
    };
  }

  const accepted = (source: Message, oldest: FoundWebhook | null) =>
    describeAccepted(source, headersOf(source, oldest));
  const NONE = { webhook: null, delivery: undefined };
  const signed = (key: string) => createHmac('sha256', key).update(message.payload).digest('hex');
  const headerOf = (response: object, name: string) =>
    (response as { headers: { key: string; value: string }[] }).headers.find(
      ({ key }) => key === name,
    )?.value;

  describe('an accepted message', () => {
    test.each([
      [0, 0],
      [DELIVERIES_OF_A_ROUND, 0],
      [2 * DELIVERIES_OF_A_ROUND + 1, 2],
    ])(
      'to %d webhooks is described in %d further rounds of the event loop',
      async (webhooks, rounds) => {
        const targets = Array.from({ length: webhooks }, (_, n) => `wh_${n}`);
        const source = { ...message, targets, disabledTargets: new Set(targets.slice(-1)) };
        const shown = headersOf(source, webhook('wh_0'));
        let counted = 0;
        let counting: NodeJS.Immediate;
        const count = (): void => {
          counted += 1;
          counting = setImmediate(count);
        };
        counting = setImmediate(count);
        const described = await describeAccepted(source, shown);
        clearImmediate(counting);
        expect(described.deliveries).toEqual(
          targets.map((webhookId, n) => ({
            id: deliveryIdOf(source.id, webhookId),
            webhookId,
            status: n === webhooks - 1 ? 'cancelled' : 'pending',
            attemptCount: 0,
          })),
        );
        expect(counted).toBe(rounds);
      },
    );

    test('has the fields of the contract, and the signature and headers of the oldest webhook', async () => {
      const headers = [
        { key: 'Content-Type', value: 'application/json' },
        { key: 'User-Agent', value: expect.stringMatching(/^Posthorn\/\d/) },
        { key: 'Accept', value: '*/*' },
        { key: 'Accept-Encoding', value: 'identity' },
        { key: 'X-Sig', value: signed('own') },
        { key: 'webhook-id', value: message.id },
      ];
      const [first, second] = ['wh_1', 'wh_2'].map((id) => deliveryIdOf(message.id, id));
      expect(await accepted(message, webhook('wh_1'))).toEqual({
        id: message.id,
        noTargetReason: null,
        orderingKey: null,
        delivered: false,
        payload: '{"n": 1e400}',
        signature: signed('own'),
        headers,
        tags: [],
        externalId: null,
        deliverAt: null,
        expiresAt: null,
        retentionDays: null,
        createdAt: CREATED,
        updatedAt: CREATED,
        deliveryAttempt: {
          id: attemptIdOf(String(first), 1),
          processed: false,
          resend: false,
          statusCode: null,
          response: null,
          headers,
          createdAt: CREATED,
          updatedAt: CREATED,
        },
        deliveries: [
          { id: first, webhookId: 'wh_1', status: 'pending', attemptCount: 0 },
          { id: second, webhookId: 'wh_2', status: 'pending', attemptCount: 0 },
        ],
      });
    });

    test('without a target is not delivered', async () => {
      expect(await accepted({ ...message, targets: [] }, null)).toMatchObject({
        delivered: false,
        signature: null,
        headers: [],
        deliveryAttempt: null,
        deliveries: [],
      });
    });

    test('has no signature and no headers if the oldest webhook cannot be decrypted', async () => {
      const problem = new SealedValueError('secret of wh_1', 'k1');
      const oldest = unopenedWebhook('wh_1', problem);
      const deliveryId = deliveryIdOf(message.id, 'wh_1');
      expect(await accepted(message, oldest)).toMatchObject({
        signature: null,
        headers: [],
        deliveries: [{ webhookId: 'wh_1' }, {}],
        deliveryAttempt: { id: attemptIdOf(deliveryId, 1), processed: false, headers: [] },
      });
    });

    test.each<[string, AuthMethod, string, string]>([
      [
        'basic',
        { method: 'basic', username: 'u', password: 'hush' },
        'Authorization',
        `Basic ${MASK}`,
      ],
      ['api_key', { method: 'api_key', apiKey: 'hush', apiKeyHeader: 'X-K' }, 'X-K', MASK],
    ])(
      'to a webhook with %s has a masked credential and is signed with the secret',
      async (_name, auth, key, value) => {
        const response = await accepted(message, webhook('wh_1', auth));
        expect(headerOf(response, key)).toBe(value);
        expect(response).toMatchObject({ signature: signed(secret) });
        expect(JSON.stringify(response)).not.toMatch(/hush|whsec_/);
      },
    );

    test('a message to a webhook with ed25519 has no header of authentication, and is signed with the secret', async () => {
      const asymmetric: AuthMethod = { ...hmac, signatureAlgorithm: 'ed25519' };
      const response = await accepted(message, webhook('wh_1', asymmetric));
      const names = response.headers.map(({ key }) => key);
      expect(names).toEqual([
        ...['Content-Type', 'User-Agent', 'Accept', 'Accept-Encoding', 'webhook-id'],
      ]);
      expect(response).toMatchObject({ signature: signed(secret) });
    });

    test('has masked values of custom headers whose names suggest credentials', async () => {
      const names = ['Authorization', 'X-Auth-Token', 'X-Client-Secret', 'X-API-Key', 'X-Tenant'];
      const custom = names.map((key) => ({ key, value: 'plain' }));
      const response = await accepted(message, webhook('wh_1', hmac, custom));
      const values = names.map((name) => headerOf(response, name));
      expect(values).toEqual([MASK, MASK, MASK, MASK, 'plain']);
    });
  });

  describe('a message as it stands now', () => {
    test('shows the last attempt of the oldest webhook', () => {
      const oldest = {
        webhook: webhook('wh_1'),
        delivery: delivery('wh_1', 'pending', [500, 503]),
      };
      const others = [delivery('wh_2', 'delivered', [200])];
      expect(describeMessage(message, oldest, [oldest.delivery, ...others])).toMatchObject({
        appId: 'app_1',
        status: 'pending',
        delivered: false,
        signature: signed('own'),
        createdAt: CREATED,
        updatedAt: '2024-01-02T03:04:06.678Z',
        deliveryAttempt: {
          id: attemptIdOf(deliveryIdOf(message.id, 'wh_1'), 2),
          processed: true,
          resend: false,
          statusCode: 503,
          response: 'response 2',
          headers: expect.any(Array),
          createdAt: '2024-01-02T03:04:06.178Z',
          updatedAt: '2024-01-02T03:04:06.678Z',
        },
        deliveries: [
          { webhookId: 'wh_1', status: 'pending', attemptCount: 2 },
          { webhookId: 'wh_2', status: 'delivered', attemptCount: 1 },
        ],
      });
    });

    test('is pending while a target has no recorded attempt', () => {
      const oldest = { webhook: webhook('wh_1'), delivery: delivery('wh_1', 'delivered', [200]) };
      const response = describeMessage(message, oldest, [
        oldest.delivery,
        outlineBefore(message, 'wh_2'),
      ]);
      expect(response).toMatchObject({ status: 'pending', delivered: false });
    });

    test('is delivered once every delivery is delivered', () => {
      const oldest = { webhook: webhook('wh_1'), delivery: delivery('wh_1', 'delivered', [200]) };
      const response = describeMessage(message, oldest, [
        oldest.delivery,
        delivery('wh_2', 'delivered', [200]),
      ]);
      expect(response).toMatchObject({ status: 'delivered', delivered: true });
    });

    test('without a target is not delivered', () => {
      const response = describeMessage({ ...message, targets: [] }, NONE, []);
      expect(response).toMatchObject({
        delivered: false,
        deliveryAttempt: null,
        updatedAt: CREATED,
      });
    });

    test('stays readable after its webhook was deleted', () => {
      const oldest = { webhook: null, delivery: delivery('wh_1', 'cancelled', []) };
      const others = [delivery('wh_2', 'cancelled', [])];
      expect(describeMessage(message, oldest, [oldest.delivery, ...others])).toMatchObject({
        status: 'cancelled',
        signature: null,
        headers: [],
        deliveryAttempt: null,
      });
    });
  });
});
