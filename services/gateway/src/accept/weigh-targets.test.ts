import { describe, expect, test } from '@jest/globals';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { bytesOfTargets } from './weigh-targets.ts';

const plain = sampleWebhook(1, { customHeaders: [], eventTypes: [] });
const weight = bytesOfTargets([plain]);

describe('the webhooks of a look-up', () => {
  test('weigh something also when there are none', () => {
    expect(bytesOfTargets([])).toBe(400);
  });

  test('weigh as much as each of them', () => {
    expect(bytesOfTargets([plain, plain]) - weight).toBe(weight - 400);
  });

  test('weigh more with custom headers, event types and a longer address', () => {
    const headers = [{ key: 'x-tenant', value: 'v'.repeat(1_000) }];
    expect(bytesOfTargets([{ ...plain, customHeaders: headers }]) - weight).toBe(1_168);
    expect(bytesOfTargets([{ ...plain, eventTypes: ['order.paid'] }]) - weight).toBe(90);
    expect(bytesOfTargets([{ ...plain, url: `${plain.url}/hook` }]) - weight).toBe(5);
  });
});
