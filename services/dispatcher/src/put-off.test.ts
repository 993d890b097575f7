import { describe, expect, test } from '@jest/globals';
import { DUE_AT_HEADER } from '@posthorn/domain/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { sampleDue, sampleRecord } from '../../../test/support/sample-record.ts';
import { AHEAD_HEADER, createPutOff, turnAtOf } from './put-off.ts';

const NOW_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

const turnIn = (text: string) => turnAtOf(sampleRecord({ 'turn-at': text }), NOW_MS);

describe('the turn of a record that was put off', () => {
  test('is what its header says', () => {
    expect(turnIn(String(NOW_MS + DAY_MS))).toBe(NOW_MS + DAY_MS);
  });

  test.each([
    ['a time that no booking reaches', String(NOW_MS + 367 * DAY_MS)],
    ['no time', 'soon'],
    ['a negative one', '-1'],
  ])('is not there when it is %s', (_what, text) => {
    expect(turnIn(text)).toBeNull();
  });
});

describe('putting an attempt off', () => {
  async function dueAfter(headers: Record<string, string>): Promise<number> {
    const published: OutgoingRecord[] = [];
    const putOff = createPutOff({
      log: {
        publish: (records) => {
          published.push(...records);
          return Promise.resolve();
        },
      },
      parkedByDelayMs: new Map([[300_000, 'retry.5m']]),
      nowMs: () => NOW_MS,
    });
    await putOff(sampleRecord(headers), sampleDue(), { turnAtMs: NOW_MS + 300_000, fit: 'before' });
    return Number(published[0]?.headers?.[DUE_AT_HEADER]) - NOW_MS;
  }

  test('makes it due when its delay is over', async () => {
    expect(await dueAfter({ [DUE_AT_HEADER]: String(NOW_MS - 10) })).toBe(300_000);
  });

  test('makes it due later by twice what it came early: the clock that released it is ahead of ours', async () => {
    expect(await dueAfter({ [DUE_AT_HEADER]: String(NOW_MS + 70_000) })).toBe(440_000);
  });

  test('keeps to what it came early once that is no more than it was given', async () => {
    const headers = { [DUE_AT_HEADER]: String(NOW_MS + 70_000), [AHEAD_HEADER]: '140000' };
    expect(await dueAfter(headers)).toBe(370_000);
  });
});
