import { describe, expect, test } from '@jest/globals';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { targetListOf } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { ResolvedRequest } from './build-message.ts';
import { batchCostOf, fanOutMsOf, memoryBytesOf } from './request-cost.ts';

function request(payloadLength: number, webhookCount: number, disabled = 0): ResolvedRequest {
  const webhooks = Array.from({ length: webhookCount }, (_, n) =>
    openedWebhook(n + 1, { disabled: n < disabled }),
  );
  return {
    request: {
      companyId: 'comp_a',
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload: 'x'.repeat(payloadLength),
      requestId: 'request-1',
      idempotency: null,
    },
    ...targetListOf(webhooks, webhooks[0] ?? null),
  };
}

describe('a request', () => {
  test.each([
    [1_000, 1, 1],
    [16_383, 99, 1],
    [16_384, 1, 2],
    [2, 100, 2],
    [2, 10_000, 101],
    [262_144, 1, 17],
  ])('of %i characters to %i webhooks costs %i', (chars, webhooks, cost) => {
    expect(batchCostOf(request(chars, webhooks))).toBe(cost);
  });

  test('is alone in its batch when its 10,000 webhooks are disabled: their ids are stored twice', () => {
    expect(batchCostOf(request(2, 10_000, 10_000))).toBe(201);
  });

  test('to disabled webhooks is charged with what it takes to record their deliveries', () => {
    expect(fanOutMsOf(request(2, 10_000))).toBe(250);
    expect(fanOutMsOf(request(2, 10_000, 10_000))).toBe(500);
  });

  test('holds more memory with a longer payload and with more webhooks', () => {
    const bytes = memoryBytesOf(request(1_000, 1));
    expect(memoryBytesOf(request(2_000, 1)) - bytes).toBe(2_000);
    expect(memoryBytesOf(request(1_000, 11)) - bytes).toBe(3_000);
  });
});
