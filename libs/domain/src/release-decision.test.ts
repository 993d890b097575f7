import { describe, expect, test } from '@jest/globals';
import { decideRelease, type Releasable } from './release-decision.ts';

const due = { attemptNumber: 3, trigger: 'retry' as const };
const delivery = { status: 'pending' as const, attemptCount: 2 };
const webhook = { disabled: false };

const decide = (changes: Partial<Releasable>) =>
  decideRelease({ due, isPutOff: false, delivery, webhook, ...changes });

describe('deciding about a parked attempt that is due', () => {
  test('releases what is still to be made', () => {
    expect(decide({})).toBe('release');
  });

  test('drops what a resend has delivered meanwhile', () => {
    expect(decide({ delivery: { status: 'delivered', attemptCount: 8 } })).toBe('drop');
  });

  test('drops an attempt that is recorded already', () => {
    expect(decide({ delivery: { status: 'pending', attemptCount: 3 } })).toBe('drop');
  });

  test('leaves it to the dispatcher whether the failure of a recorded attempt was published, if it was deferred', () => {
    const recorded = { status: 'pending' as const, attemptCount: 3 };
    expect(decide({ isPutOff: true, delivery: recorded })).toBe('release');
    const deleted = { isPutOff: true, delivery: recorded, webhook: undefined };
    expect(decide(deleted)).toBe('webhook_deleted');
  });

  test('drops what was deferred and is settled', () => {
    const delivered = { status: 'delivered' as const, attemptCount: 3 };
    const further = { status: 'pending' as const, attemptCount: 4 };
    expect(decide({ isPutOff: true, delivery: delivered })).toBe('drop');
    expect(decide({ isPutOff: true, delivery: further })).toBe('drop');
  });

  test('drops what ended before its webhook was deleted', () => {
    const ended = { status: 'exhausted' as const, attemptCount: 7 };
    expect(decide({ delivery: ended, webhook: undefined })).toBe('drop');
  });

  test('cancels what belongs to a deleted webhook', () => {
    expect(decide({ webhook: undefined })).toBe('webhook_deleted');
  });

  test('cancels what belongs to a disabled webhook', () => {
    expect(decide({ webhook: { disabled: true } })).toBe('webhook_disabled');
  });

  test('leaves a delivery without a record to the dispatcher', () => {
    expect(decide({ delivery: undefined, webhook: undefined })).toBe('release');
  });

  test('leaves a resend to its mark', () => {
    const resend = { attemptNumber: 8, trigger: 'resend' as const };
    const ended = { status: 'exhausted' as const, attemptCount: 7 };
    expect(decide({ due: resend, delivery: ended, webhook: undefined })).toBe('release');
  });
});
