import { describe, expect, test } from '@jest/globals';
import { cancelReasonAtAcceptance, cancelReasonOf } from './when-cancelled.ts';

describe('a delivery is cancelled', () => {
  test('at acceptance when its webhook is disabled, and no other is', () => {
    const message = { disabledTargets: new Set(['wh_2']) };
    expect(cancelReasonAtAcceptance(message, 'wh_1')).toBeNull();
    expect(cancelReasonAtAcceptance(message, 'wh_2')).toBe('webhook_disabled');
  });

  test.each([
    ['is deleted', null, 'webhook_deleted'],
    ['is deleted', undefined, 'webhook_deleted'],
    ['is disabled', { disabled: true }, 'webhook_disabled'],
    ['is enabled', { disabled: false }, null],
  ])('by the state of its webhook when an attempt is due: it %s', (_state, webhook, reason) => {
    expect(cancelReasonOf(webhook)).toBe(reason);
  });
});
