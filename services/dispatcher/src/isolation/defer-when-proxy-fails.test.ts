import { expect, it } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { decodeRetryDue, encodeRetryDue } from '@posthorn/domain/records/records.ts';
import {
  createAttemptHarness,
  NOW_MS,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const RETRY = encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS });

it('an attempt whose request our proxy failed is deferred, and nothing of it is settled', async () => {
  const { attempt, published, settled, deferred } = createAttemptHarness({
    send: () => Promise.resolve(null),
  });
  await attempt(sampleRecord({}, { topic: 'due', value: RETRY }));
  expect([deferred, settled]).toEqual([['proxy'], []]);
  expect(published).toMatchObject([
    { topic: 'deferred', headers: { 'turn-at': String(NOW_MS + 30_000) } },
  ]);
  const value = published[0]?.value ?? Buffer.alloc(0);
  expect(decodeRetryDue(value)).toMatchObject({ attemptNumber: 3, trigger: 'retry' });
});
