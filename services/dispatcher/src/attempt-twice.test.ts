import { describe, expect, it } from '@jest/globals';
import { encodeMessageCreated, encodeRetryDue, refOf } from '@posthorn/domain/records/records.ts';
import {
  createAttemptSteps,
  NOW_MS,
  sendWell,
} from '../../../test/support/isolation/attempt-steps.ts';
import { sampleDue, sampleRecord } from '../../../test/support/samples/sample-record.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const RETRY = encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS });
const LATE = encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS - 3_600_001 });
const CREATED = encodeMessageCreated(REF, Buffer.from('{}'));
const created = sampleRecord({}, { topic: 'created', value: CREATED });
const retry = sampleRecord({}, { topic: 'due', value: RETRY });
const settledNow = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a record that somebody may have worked on before', () => {
  it.each([
    ['of a partition that changed hands', { ...created, isInherited: true }],
    ['of the slow lane', sampleRecord({}, { topic: 'slow', value: RETRY })],
    ['that was deferred', sampleRecord({ 'turn-at': '1' }, { topic: 'due', value: RETRY })],
    ['that was perhaps taken for lost', sampleRecord({}, { topic: 'due', value: LATE })],
  ])('is asked about, and left alone when it was made: %s', async (_what, record) => {
    const { attempt, asked, sent } = createAttemptSteps({
      madeBefore: () => Promise.resolve(true),
    });
    await attempt(record);
    expect([asked.madeBefore, sent]).toEqual([1, []]);
  });

  it('is one whose attempt is under way here, too: it waits for its twin', async () => {
    let finish: () => void = () => undefined;
    const { attempt, asked, sent } = createAttemptSteps({
      send: async (...given) => {
        await new Promise<void>((resolve) => (finish = resolve));
        return sendWell(...given);
      },
      madeBefore: () => Promise.resolve(true),
    });
    const both = [attempt(retry), attempt(retry)];
    await settledNow();
    expect([asked.madeBefore, sent]).toEqual([0, [3]]);
    finish();
    await Promise.all(both);
    expect([asked.madeBefore, sent]).toEqual([1, [3]]);
  });

  it('is the copy of one that was worked on here a moment ago', async () => {
    const { attempt, asked, sent } = createAttemptSteps({
      madeBefore: () => Promise.resolve(true),
    });
    await attempt(retry);
    expect([asked.madeBefore, sent]).toEqual([0, [3]]);
    await attempt({ ...retry, offset: retry.offset + 1 });
    expect([asked.madeBefore, sent]).toEqual([1, [3]]);
  });

  it('is any other record not: the hot path asks nobody', async () => {
    const { attempt, asked } = createAttemptSteps();
    await attempt(created);
    await attempt(retry);
    expect(asked.madeBefore).toBe(0);
  });
});
