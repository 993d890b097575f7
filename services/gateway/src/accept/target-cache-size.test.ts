import { describe, expect, test } from '@jest/globals';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { estimatedBytesOf } from './target-cache-size.ts';

const plain = sampleWebhook(1, { customHeaders: [], eventTypes: [] });
const bytes = estimatedBytesOf([plain]);

describe('the webhooks of a look-up', () => {
  test('take memory even when there are none', () => {
    expect(estimatedBytesOf([])).toBe(400);
  });

  test('take the sum of what each of them takes', () => {
    expect(estimatedBytesOf([plain, plain]) - bytes).toBe(bytes - 400);
  });

  test('take more with custom headers, event types and a longer address', () => {
    const headers = [{ key: 'x-tenant', value: 'v'.repeat(1_000) }];
    expect(estimatedBytesOf([{ ...plain, customHeaders: headers }]) - bytes).toBe(1_168);
    expect(estimatedBytesOf([{ ...plain, eventTypes: ['order.paid'] }]) - bytes).toBe(90);
    expect(estimatedBytesOf([{ ...plain, url: `${plain.url}/hook` }]) - bytes).toBe(5);
  });
});
