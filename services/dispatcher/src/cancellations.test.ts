import { beforeEach, describe, expect, test } from '@jest/globals';
import type { StoppingCancellation } from '@posthorn/domain/delivery/filter-cancellation.ts';
import { timeMsOf } from '@posthorn/domain/ids.ts';
import { sampleDue } from '../../../test/support/samples/sample-record.ts';
import { type Cancellations, openCancellations } from './cancellations.ts';

const due = sampleDue();
const { companyId, webhookId } = due;
const beforeMs = due.createdAtMs + 1;

let stored: StoppingCancellation[];
let reads: number;
let nowMs: number;
let isFollowed: boolean;
let cancellations: Cancellations;

beforeEach(async () => {
  [stored, reads, nowMs, isFollowed] = [[], 0, timeMsOf(due.messageId), true];
  cancellations = await openCancellations({
    cancellations: {
      listStopping() {
        reads += 1;
        return Promise.resolve([...stored]);
      },
    },
    areChangesFollowed: () => isFollowed,
    keepTrying: (_purpose, step) => step(),
    nowMs: () => nowMs,
    logger: { warn: () => undefined },
  });
});

const cancel = (filter: StoppingCancellation['filter'], of = companyId): void => {
  stored = [{ companyId: of, filter, beforeMs }];
};

describe('the cancellations that a dispatcher knows', () => {
  test('stop the attempts that they select, of their company, but no resend', async () => {
    cancel({ webhookId, eventType: 'order.paid' });
    await cancellations.tick();
    expect(cancellations.reasonFor(due, 'order.paid')).toBeNull();
    cancellations.refresh();
    await cancellations.tick();
    expect(cancellations.reasonFor(due, 'order.paid')).toBe('cancelled_by_client');
    expect(cancellations.reasonFor(due, 'order.sent')).toBeNull();
    expect(cancellations.reasonFor({ ...due, trigger: 'resend' }, 'order.paid')).toBeNull();
    expect(cancellations.reasonFor({ ...due, companyId: 'comp_b' }, 'order.paid')).toBeNull();
  });

  test('are read again each second while changes are not followed, and each minute else, also when there was none', async () => {
    await cancellations.tick();
    expect(reads).toBe(1);
    nowMs += 60_000;
    await cancellations.tick();
    expect(reads).toBe(2);
    isFollowed = false;
    cancel({ webhookId });
    await cancellations.tick();
    expect(cancellations.reasonFor(due, '')).toBe('cancelled_by_client');
  });
});
