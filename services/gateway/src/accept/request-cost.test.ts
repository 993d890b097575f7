import { describe, expect, test } from '@jest/globals';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { targetListOf } from '../../../../test/support/samples/target-list.ts';
import type { ResolvedRequest } from './build-message.ts';
import { batchCostOf, memoryBytesOf } from './request-cost.ts';

function request(payloadLength: number, webhookCount: number): ResolvedRequest {
  return {
    request: {
      companyId: 'comp_a',
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload: 'x'.repeat(payloadLength),
      requestId: 'request-1',
      idempotency: null,
    },
    ...targetListOf(Array.from({ length: webhookCount }, () => openedWebhook(1))),
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

  test('holds more memory with a longer payload and with more webhooks', () => {
    const bytes = memoryBytesOf(request(1_000, 1));
    expect(memoryBytesOf(request(2_000, 1)) - bytes).toBe(2_000);
    expect(memoryBytesOf(request(1_000, 11)) - bytes).toBe(3_000);
  });
});
