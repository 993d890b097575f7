import { describe, expect, test } from '@jest/globals';
import { openedWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { estimatedBytesOf } from './target-cache-size.ts';

const sizeOf = (webhooks: FoundWebhook[]) =>
  estimatedBytesOf({ kind: 'webhooks', notStored: {}, webhooks });

const plain = openedWebhook(1, { customHeaders: [], eventTypes: [] });
const bytes = sizeOf([plain]);

describe('the targets in a wide app', () => {
  const sizeWith = (count: number, disabled = 0) => {
    const targets = Array.from({ length: count }, (_, n) => `wh_${n}`);
    const disabledTargets = new Set(targets.slice(0, disabled));
    return estimatedBytesOf({ kind: 'targets', list: { targets, disabledTargets, oldest: plain } });
  };

  test('take little each, beside the oldest webhook, and more where they are disabled', () => {
    expect(sizeWith(1_000) - sizeWith(0)).toBe(70_000);
    expect(sizeWith(1_000, 1_000) - sizeWith(1_000)).toBe(50_000);
    expect(sizeWith(0)).toBe(bytes);
  });

  test('take no more than their number tells while they are not looked up', () => {
    expect(estimatedBytesOf({ kind: 'wide', notStored: {}, number: 1 })).toBe(400);
  });
});

describe('the webhooks of a look-up', () => {
  test('take memory even when there are none', () => {
    expect(sizeOf([])).toBe(400);
  });

  test('take the sum of what each of them takes', () => {
    expect(sizeOf([plain, plain]) - bytes).toBe(bytes - 400);
  });

  test('take more with custom headers, event types and a longer address', () => {
    const headers = [{ key: 'x-tenant', value: 'v'.repeat(1_000) }];
    const auth = { ...plain.authMethod, hmacSecret: 's'.repeat(1_009) };
    expect(sizeOf([{ ...plain, authMethod: auth }]) - bytes).toBe(1_000);
    expect(sizeOf([{ ...plain, customHeaders: headers }]) - bytes).toBe(1_168);
    expect(sizeOf([{ ...plain, eventTypes: ['order.paid'] }]) - bytes).toBe(90);
    expect(sizeOf([{ ...plain, url: `${plain.url}/hook` }]) - bytes).toBe(5);
  });
});
