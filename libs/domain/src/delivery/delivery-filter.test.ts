import { describe, expect, it } from '@jest/globals';
import { isNarrowed, isSelected, statusesOf } from './delivery-filter.ts';

const DELIVERY = {
  status: 'exhausted',
  reason: null,
  waiting: null,
  webhookId: 'wh_1',
  appId: 'app_1',
  eventType: 'order.paid',
} as const;

describe('isSelected', () => {
  it.each([
    ['without a field', {}],
    ['by each field', { webhookId: 'wh_1', appId: 'app_1', eventType: 'order.paid' }],
    ['by one of several statuses', { statuses: ['cancelled', 'exhausted'] }],
    ['by all of its attempts', { reason: 'all_attempts' }],
  ] as const)('selects a delivery %s', (_how, filter) => {
    expect(isSelected(filter, DELIVERY)).toBe(true);
  });

  it.each([
    ['another webhook', { webhookId: 'wh_2' }],
    ['another app', { appId: 'app_2' }],
    ['another event type', { eventType: 'order.pai' }],
    ['another status', { statuses: ['pending'] }],
    ['another reason', { reason: 'gone' }],
    ['what it waits for', { waiting: 'hold' }],
  ] as const)('leaves out a delivery by %s', (_what, filter) => {
    expect(isSelected(filter, DELIVERY)).toBe(false);
  });

  it('selects a cancelled delivery by its reason, and not as one that had all attempts', () => {
    const cancelled = { ...DELIVERY, status: 'cancelled', reason: 'webhook_disabled' } as const;
    expect(isSelected({ reason: 'webhook_disabled' }, cancelled)).toBe(true);
    expect(isSelected({ reason: 'all_attempts' }, cancelled)).toBe(false);
    expect(isSelected({ reason: 'all_attempts' }, { ...cancelled, reason: null })).toBe(false);
  });
});

describe('statusesOf', () => {
  it('returns the statuses that reason and waiting leave', () => {
    expect(statusesOf({ reason: 'expired' })).toEqual(['cancelled']);
    expect(statusesOf({ reason: 'all_attempts' })).toEqual(['exhausted']);
    expect(statusesOf({ waiting: 'hold' })).toEqual(['pending']);
    expect(statusesOf({ statuses: ['pending'], reason: 'gone' })).toEqual([]);
  });
});

describe('isNarrowed', () => {
  it('counts every field but the status', () => {
    expect(isNarrowed({ statuses: ['pending'], appId: undefined })).toBe(false);
    expect(isNarrowed({ sinceMs: 0 })).toBe(true);
  });
});
