import { beforeEach, describe, expect, test } from '@jest/globals';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createMarkBacklogs, type MarkBacklogs } from './mark-backlogs.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;

let marks: [string[], number][];
let nowMs: number;
let markBacklogs: MarkBacklogs;

beforeEach(() => {
  marks = [];
  nowMs = NOW_MS;
  markBacklogs = createMarkBacklogs({
    webhooks: {
      markDeferred: (ids, atMs) => Promise.resolve(void marks.push([[...ids], atMs])),
    },
    keepTrying,
    reconcileAfterMs: 24 * HOUR_MS,
    nowMs: () => nowMs,
  });
});

function deferred(webhookId: string, ageHours: number) {
  const due = { webhookId, createdAtMs: nowMs - ageHours * HOUR_MS };
  return { record: { headers: { 'turn-at': '1' } }, due };
}

describe('a webhook whose deferred attempts are released', () => {
  test('is marked when one of them is half a day old', async () => {
    await markBacklogs([deferred('wh_old', 12), deferred('wh_young', 11.9)]);
    expect(marks).toEqual([[['wh_old'], NOW_MS]]);
  });

  test('is not marked for a retry, which waits for its schedule', async () => {
    await markBacklogs([{ ...deferred('wh_1', 20), record: { headers: {} } }]);
    expect(marks).toEqual([]);
  });

  test('is marked again after three hours only', async () => {
    const release = () => markBacklogs([deferred('wh_1', 20), deferred('wh_1', 20)]);
    await release();
    nowMs += 3 * HOUR_MS - 1;
    await release();
    nowMs += 1;
    await release();
    expect(marks).toEqual([
      [['wh_1'], NOW_MS],
      [['wh_1'], NOW_MS + 3 * HOUR_MS],
    ]);
  });
});
