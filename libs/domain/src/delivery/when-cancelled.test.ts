import { describe, expect, test } from '@jest/globals';
import {
  cancelReasonAtAcceptance,
  cancelReasonOf,
  decideRelease,
  type Releasable,
} from './when-cancelled.ts';

describe('a delivery is cancelled', () => {
  test('a delivery is cancelled at acceptance when its webhook is disabled, and no other is', () => {
    const message = { disabledTargets: new Set(['wh_2']) };
    expect(cancelReasonAtAcceptance(message, 'wh_1')).toBeNull();
    expect(cancelReasonAtAcceptance(message, 'wh_2')).toBe('webhook_disabled');
  });

  test.each([
    ['is deleted', null, 'webhook_deleted'],
    ['is deleted', undefined, 'webhook_deleted'],
    ['is disabled', { disabled: true, cancelBeforeMs: 101 }, 'webhook_disabled'],
    ['is enabled', { disabled: false, cancelBeforeMs: null }, null],
    ['cancels earlier ones', { disabled: false, cancelBeforeMs: 100 }, null],
    ['cancels it', { disabled: false, cancelBeforeMs: 101 }, 'cancelled_by_client'],
  ])('by the state of its webhook when an attempt is due: it %s', (_state, webhook, reason) => {
    const attempt = { createdAtMs: 100, trigger: 'retry' } as const;
    expect(cancelReasonOf(webhook, attempt)).toBe(reason);
  });

  test('a client cancels a delivery, but not the resend of it that a client asks for later', () => {
    const stops = { disabled: false, cancelBeforeMs: 101 };
    expect(cancelReasonOf(stops, { createdAtMs: 100, trigger: 'resend' })).toBeNull();
  });
});

const due = { attemptNumber: 3, trigger: 'retry' as const, createdAtMs: 100 };
const delivery = { status: 'pending' as const, attemptCount: 2 };
const webhook = { disabled: false, cancelBeforeMs: null };

const RELEASE = { kind: 'release' };
const DROP = { kind: 'drop' };
const CANCEL_DELETED = { kind: 'cancel', reason: 'webhook_deleted' };
const CANCEL_DISABLED = { kind: 'cancel', reason: 'webhook_disabled' };

const decide = (changes: Partial<Releasable>) =>
  decideRelease({ due, nowMs: 1_000, isDeferred: false, delivery, webhook, ...changes });

describe('a parked attempt that is due', () => {
  test('is released while it is still to be made', () => {
    expect(decide({})).toEqual(RELEASE);
  });

  test('goes to the dispatcher with an ordering key, which goes on behind what has ended or is cancelled', () => {
    const lookedUp = { kind: 'release', isLookedUp: true };
    const ordered = (changes: Partial<Releasable>) =>
      decide({ due: { ...due, orderingKey: 'order-1' }, ...changes });
    expect(ordered({})).toEqual(RELEASE);
    expect(ordered({ delivery: { status: 'cancelled', attemptCount: 2 } })).toEqual(lookedUp);
    expect(ordered({ webhook: { ...webhook, disabled: true } })).toEqual(lookedUp);
    expect(ordered({ delivery: { status: 'pending', attemptCount: 3 } })).toEqual(DROP);
  });

  test('is dropped when a resend has delivered its delivery', () => {
    expect(decide({ delivery: { status: 'delivered', attemptCount: 8 } })).toEqual(DROP);
  });

  test('is dropped when it is recorded already', () => {
    expect(decide({ delivery: { status: 'pending', attemptCount: 3 } })).toEqual(DROP);
  });

  test('is dropped when its delivery ended before the webhook was deleted', () => {
    const ended = { status: 'exhausted' as const, attemptCount: 7 };
    expect(decide({ delivery: ended, webhook: undefined })).toEqual(DROP);
  });

  test.each([
    [{ expiresAtMs: 1_000 }, { kind: 'cancel', reason: 'expired' }],
    [{ removeAtMs: 999 }, { kind: 'cancel', reason: 'expired' }],
    [{ expiresAtMs: 1_001, removeAtMs: 1_001 }, RELEASE],
  ])('is cancelled when its message has expired: %j', (lifetime, decision) => {
    expect(decide({ due: { ...due, ...lifetime } })).toEqual(decision);
    expect(decide({ due: { ...due, ...lifetime, trigger: 'resend' } })).toEqual(RELEASE);
  });

  test('is cancelled when its webhook was deleted', () => {
    expect(decide({ webhook: undefined })).toEqual(CANCEL_DELETED);
  });

  test('is cancelled when its webhook is disabled', () => {
    expect(decide({ webhook: { ...webhook, disabled: true } })).toEqual(CANCEL_DISABLED);
  });

  test('is cancelled when a client has cancelled what was pending at its webhook', () => {
    const stops = { ...webhook, cancelBeforeMs: 101 };
    const cancel = { kind: 'cancel', reason: 'cancelled_by_client' };
    expect(decide({ webhook: stops })).toEqual(cancel);
    expect(decide({ webhook: { ...webhook, cancelBeforeMs: 100 } })).toEqual(RELEASE);
  });

  test('is released when nothing of its delivery is recorded: the dispatcher decides', () => {
    expect(decide({ delivery: undefined, webhook: undefined })).toEqual(RELEASE);
  });

  test('is released when it is a resend: its mark decides', () => {
    const resend = { attemptNumber: 8, trigger: 'resend' as const, createdAtMs: 100 };
    const ended = { status: 'exhausted' as const, attemptCount: 7 };
    expect(decide({ due: resend, delivery: ended, webhook: undefined })).toEqual(RELEASE);
  });
});

describe('a deferred attempt that is due', () => {
  test('is released when it is recorded: its failure may not be published', () => {
    const recorded = { status: 'pending' as const, attemptCount: 3 };
    expect(decide({ isDeferred: true, delivery: recorded })).toEqual(RELEASE);
    const deleted = { isDeferred: true, delivery: recorded, webhook: undefined };
    expect(decide(deleted)).toEqual(CANCEL_DELETED);
  });

  test('is dropped when its delivery is final or has a later attempt', () => {
    const delivered = { status: 'delivered' as const, attemptCount: 3 };
    const further = { status: 'pending' as const, attemptCount: 4 };
    expect(decide({ isDeferred: true, delivery: delivered })).toEqual(DROP);
    expect(decide({ isDeferred: true, delivery: further })).toEqual(DROP);
  });
});
