import { describe, expect, it } from '@jest/globals';
import { firstIdAt } from '../ids.ts';
import { isCancelledBy, stepAfter } from './filter-cancellation.ts';

const AT_MS = 1_700_000_000_000;
const DUE = {
  messageId: `${firstIdAt('msg', AT_MS)}0123456789abcdef`,
  webhookId: 'wh_1',
  appId: 'app_1',
  createdAtMs: AT_MS,
  eventType: 'order.paid',
};

const isCancelled = (filter: Parameters<typeof isCancelledBy>[0]['filter'], due = DUE) =>
  isCancelledBy({ filter, beforeMs: AT_MS + 1 }, due);

describe('isCancelledBy', () => {
  it.each([
    ['webhook', { webhookId: 'wh_1' }],
    ['app', { appId: 'app_1' }],
    ['event type', { eventType: 'order.paid' }],
    ['time, both ends inclusive', { sinceMs: AT_MS, untilMs: AT_MS }],
  ])('cancels a due delivery by its %s', (_by, filter) => {
    expect(isCancelled(filter)).toBe(true);
  });

  it.each([
    ['another webhook', { webhookId: 'wh_2' }],
    ['another app', { appId: 'app_2' }],
    ['another event type', { eventType: 'order' }],
    ['a later time', { sinceMs: AT_MS + 1 }],
    ['an earlier time', { untilMs: AT_MS - 1 }],
    ['what it waits for, which is known of its document only', { waiting: 'hold' }],
  ] as const)('lets a delivery go on by %s', (_by, filter) => {
    expect(isCancelled(filter)).toBe(false);
  });

  it('lets a delivery go on that a replay has created after the request', () => {
    expect(isCancelled({ appId: 'app_1' }, { ...DUE, createdAtMs: AT_MS + 1 })).toBe(false);
  });

  it('lets a delivery go on by its event type while that is not known', () => {
    expect(isCancelled({ eventType: 'order.paid' }, { ...DUE, eventType: '' })).toBe(false);
  });
});

describe('stepAfter', () => {
  it('goes over the messages and over what is recorded late, unless only what waits is selected', () => {
    expect(stepAfter('recorded', {})).toBe('unrecorded');
    expect(stepAfter('unrecorded', {})).toBe('recorded_late');
    expect(stepAfter('recorded_late', {})).toBeNull();
    expect(stepAfter('recorded', { waiting: 'hold' })).toBeNull();
  });
});
