import { describe, expect, test } from '@jest/globals';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { Arrived } from './form-message.ts';
import { bytesOf, costOf } from './weigh-request.ts';

function request(payloadLength: number, webhookCount: number): Arrived {
  return {
    request: {
      companyId: 'comp_a',
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload: 'x'.repeat(payloadLength),
      requestId: 'request-1',
      idempotency: null,
    },
    webhooks: Array<Arrived['webhooks'][number]>(webhookCount).fill(sampleWebhook(1)),
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
    expect(costOf(request(chars, webhooks))).toBe(cost);
  });

  test('weighs more with a longer payload and with more webhooks', () => {
    const weight = bytesOf(request(1_000, 1));
    expect(bytesOf(request(2_000, 1)) - weight).toBe(2_000);
    expect(bytesOf(request(1_000, 11)) - weight).toBe(3_000);
  });
});
