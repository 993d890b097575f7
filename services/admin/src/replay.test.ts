import { beforeEach, describe, expect, test } from '@jest/globals';
import { type DeliveryState, refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeDeliveryFailed, encodeDisabling } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  FAILED,
  sampleLetter,
  type SampleLetter,
} from '../../../test/support/samples/sample-letter.ts';
import { createLetterReader } from './letters.ts';
import { createReplay, createRepublishLetters, type Failure, WAYS } from './replay.ts';
import { ReplayReport } from './run-replay.ts';

const read = createLetterReader('p.');
const reason = 'unreadable_record';
const garbage = Buffer.from('not JSON');

let report: ReplayReport;
let notes: string[];
let published: OutgoingRecord[];
let resent: Failure[];
let state: DeliveryState | null;

beforeEach(() => {
  [notes, published, resent, state] = [[], [], [], null];
});

async function replay(letters: readonly SampleLetter[], isDryRun = false): Promise<void> {
  report = new ReplayReport(WAYS, isDryRun, (line) => notes.push(line));
  const run = createReplay({
    report,
    republish: createRepublishLetters({
      report,
      topics: new Set(['p.delivery-failed', 'p.retry.5s']),
      deliveries: {
        statesOf: (ids) =>
          Promise.resolve(new Map(ids.flatMap((id) => (state ? [[id, state]] : [])))),
      },
      records: { publish: (records) => Promise.resolve(void published.push(...records)) },
    }),
    resend: (failures) => Promise.resolve(void resent.push(...failures)),
  });
  for (const letter of letters) await run.add(read(sampleLetter(letter)));
  await run.flush();
}

describe('the replay of an unreadable record', () => {
  test('publishes it unchanged to the topic that it came from', async () => {
    await replay([{ reason, value: garbage }]);
    const { webhookId: key } = FAILED;
    expect(published).toEqual([
      { topic: 'p.delivery-failed', key, value: garbage, headers: { requestId: 'req_1' } },
    ]);
    expect(report.tally()).toEqual({ matched: 1, republished: 1, resent: 0, skipped: {} });
    expect(notes).toEqual(['1:7  record was published again to p.delivery-failed']);
  });

  test('publishes nothing in a dry run, and reports what it would publish', async () => {
    await replay([{ reason, value: garbage }], true);
    expect(published).toEqual([]);
    expect(report.tally()).toMatchObject({ republished: 1 });
    expect(notes).toEqual(['1:7  record would be published again to p.delivery-failed']);
  });

  test.each([
    ['elsewhere', 'unknown_source_topic'],
    ['dead-letters', 'unknown_source_topic'],
    ['retry.7h', 'source_topic_missing'],
  ])('skips a record that came from %s', async (topic, why) => {
    await replay([{ reason, value: garbage, topic }]);
    expect(published).toEqual([]);
    expect(report.tally()).toMatchObject({ matched: 1, skipped: { [why]: 1 } });
  });

  test.each<[DeliveryState | null, number]>([
    [null, 1],
    [{ status: 'pending', attemptCount: 2 }, 1],
    [{ status: 'pending', attemptCount: 3 }, 0],
    [{ status: 'delivered', attemptCount: 1 }, 0],
  ])('skips one that is readable now if its attempt is recorded: %j', async (recorded, times) => {
    state = recorded;
    const value = encodeRetryDue({ ...refOf(FAILED), attemptNumber: 3, dueAtMs: 9 });
    await replay([{ reason, value, topic: 'retry.5s' }]);
    expect(published).toHaveLength(times);
    expect(report.tally().skipped).toEqual(times === 0 ? { moved_on: 1 } : {});
  });

  test('publishes a failure whose attempt is recorded', async () => {
    state = { status: 'pending', attemptCount: 7 };
    await replay([{ reason, value: encodeDeliveryFailed(FAILED) }]);
    expect(published).toHaveLength(1);
  });

  test.each(['delivered', 'exhausted'] as const)(
    'publishes one that disables a webhook, although its delivery is %s',
    async (status) => {
      state = { status, attemptCount: 7 };
      const value = encodeDisabling({ ...FAILED, reason: 'control_header', changedAtMs: 1 });
      await replay([{ reason: 'unproven_record', value }]);
      expect(published).toMatchObject([{ topic: 'p.delivery-failed', value }]);
    },
  );

  test('works in batches', async () => {
    const letters = Array.from({ length: 1_100 }, (_, offset) => ({ reason, offset }) as const);
    await replay(letters.map((letter) => ({ ...letter, value: garbage })));
    expect(published).toHaveLength(1_100);
    expect(report.tally()).toMatchObject({ matched: 1_100, republished: 1_100 });
  });
});

describe('the replay of a failed delivery', () => {
  test.each(['schedule_exhausted', 'gone', 'not_retryable', 'message_missing'] as const)(
    'resends it: %s',
    async (why) => {
      await replay([{ reason: why }]);
      const { companyId, webhookId } = FAILED;
      expect(resent).toMatchObject([{ letterId: '1:7', companyId, webhookId }]);
      expect(published).toEqual([]);
    },
  );

  test('skips a letter that cannot be read', async () => {
    await replay([{ value: garbage }]);
    expect(resent).toEqual([]);
    expect(report.tally().skipped).toEqual({ unreadable_record: 1 });
  });
});

test('a letter of an unknown reason is skipped', async () => {
  await replay([{ reason: 'made_up' as typeof reason }]);
  expect(report.tally()).toEqual({
    matched: 1,
    republished: 0,
    resent: 0,
    skipped: { unknown_reason: 1 },
  });
});
