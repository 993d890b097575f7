import { describe, expect, it } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue, releasedRecord } from '@posthorn/domain/records/retry-due.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import {
  createAttemptHarness,
  NOW_MS,
  sendSuccessfully,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };

const anHourBehind: DatabaseTime = {
  nowMs: () => NOW_MS - 3_600_000,
  earlierMs: () => NOW_MS - 3_600_000,
  doubt: () => undefined,
};

describe('a message with a time of its own', () => {
  const timed = (deliverAtMs: number) => {
    const value = encodeMessageCreated({ ...REF, deliverAtMs }, null);
    return sampleRecord({}, { topic: 'created', value });
  };

  it('waits until then, and its attempt is not made', async () => {
    const { attempt, sent, settled } = createAttemptHarness();
    await attempt(timed(NOW_MS + 1));
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ kind: 'waiting', untilMs: NOW_MS + 1 }]);
  });

  it('waits while a process whose clock is ahead has released it too early', async () => {
    let doubts = 0;
    const time = { ...anHourBehind, doubt: () => void (doubts += 1) };
    const { attempt, sent, settled } = createAttemptHarness({ time });
    const waited = { ...REF, attemptCount: 0, deliverAtMs: NOW_MS - 1 };
    const { value, headers } = releasedRecord(waited, NOW_MS);
    await attempt(sampleRecord(headers, { topic: 'due', value }));
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ kind: 'waiting', untilMs: NOW_MS - 1 }]);
    expect(doubts).toBe(1);
  });

  it('is attempted when its record is read later', async () => {
    const { attempt, sent } = createAttemptHarness();
    await attempt(timed(NOW_MS));
    expect(sent).toEqual([1]);
  });
});

describe('an attempt whose message has an end', () => {
  const ending = (expiresAtMs: number, changes: object = {}) => {
    const value = encodeRetryDue({ ...REF, attemptNumber: 1, dueAtMs: 1, expiresAtMs, ...changes });
    return sampleRecord({}, { topic: 'due', value });
  };
  const failed: SendWebhook = async (...args) => ({
    ...(await sendSuccessfully(...args)),
    outcome: 'http_5xx',
    statusCode: 500,
  });

  it.each([
    ['has expired', ending(NOW_MS)],
    ['is to be removed', ending(NOW_MS + 1, { removeAtMs: NOW_MS })],
    ['is to be removed, and is resent', ending(1, { removeAtMs: 1, trigger: 'resend' })],
  ])('is cancelled when that %s', async (_what, record) => {
    const { attempt, sent, settled, settledResends } = createAttemptHarness();
    await attempt(record);
    expect(sent).toEqual([]);
    expect([...settled, ...settledResends]).toMatchObject([{ reason: 'expired' }]);
  });

  it.each([
    ['a moment before', ending(NOW_MS + 1)],
    ['afterwards when a client resends it', ending(1, { trigger: 'resend' })],
  ])('is made %s', async (_when, record) => {
    const { attempt, sent } = createAttemptHarness();
    await attempt(record);
    expect(sent).toEqual([1]);
  });

  it.each([
    [5_000, 'expired'],
    [5_002, null],
  ])('ends its delivery when it fails and that is %i ms away: %s', async (awayMs, cancelReason) => {
    const { attempt, settled } = createAttemptHarness({ send: failed });
    await attempt(ending(NOW_MS + awayMs));
    expect(settled).toMatchObject([{ attempt: { number: 1 }, cancelReason }]);
  });

  it('has not expired before it has by the clock of the database too', async () => {
    const { attempt, sent, settled } = createAttemptHarness({ send: failed, time: anHourBehind });
    await attempt(ending(NOW_MS - 1_800_000));
    expect(sent).toEqual([1]);
    expect(settled).toMatchObject([{ attempt: { number: 1 }, cancelReason: null }]);
  });

  it('ends its delivery instead of being deferred beyond that', async () => {
    const circuit = () => ({ kind: 'open', deferForMs: 60_000 }) as const;
    const { attempt, settled, deferred } = createAttemptHarness({ circuit });
    await attempt(ending(NOW_MS + 60_000));
    expect([settled, deferred]).toMatchObject([[{ reason: 'expired' }], []]);
    await attempt(ending(NOW_MS + 3_600_000, { messageId: 'msg_2' }));
    expect(deferred).toEqual(['circuit']);
  });
});
