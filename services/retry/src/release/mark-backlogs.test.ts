import { beforeEach, describe, expect, test } from '@jest/globals';
import { createMarkBacklogs, type MarkBacklogs } from './mark-backlogs.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;

let marks: [string[], number][];
let nowMs: number;
let isStoreUp: boolean;
let markBacklogs: MarkBacklogs;

beforeEach(() => {
  marks = [];
  nowMs = NOW_MS;
  isStoreUp = true;
  markBacklogs = createMarkBacklogs({
    webhooks: {
      markDeferred(ids, atMs) {
        marks.push([[...ids], atMs]);
        return isStoreUp ? Promise.resolve() : Promise.reject(new Error('away'));
      },
    },
    logger: { warn: () => undefined },
    reconcileAfterMs: 24 * HOUR_MS,
    nowMs: () => nowMs,
  });
});

function deferred(webhookId: string, ageHours: number) {
  const due = { webhookId, createdAtMs: nowMs - ageHours * HOUR_MS };
  return { record: { headers: { 'turn-at': '1' } }, due };
}

describe('a webhook whose deferred attempts are released', () => {
  test('is marked when one of them is half a day old', () => {
    markBacklogs([deferred('wh_old', 12), deferred('wh_young', 11.9)]);
    expect(marks).toEqual([[['wh_old'], NOW_MS]]);
  });

  test('is not marked for a retry, which waits for its schedule', () => {
    markBacklogs([{ ...deferred('wh_1', 20), record: { headers: {} } }]);
    expect(marks).toEqual([]);
  });

  test('is marked by a later release when the store is away', async () => {
    isStoreUp = false;
    markBacklogs([deferred('wh_1', 20)]);
    await new Promise(setImmediate);
    markBacklogs([deferred('wh_1', 20)]);
    expect(marks).toHaveLength(2);
  });

  test('is marked again after three hours only', () => {
    const release = () => {
      markBacklogs([deferred('wh_1', 20), deferred('wh_1', 20)]);
    };
    release();
    nowMs += 3 * HOUR_MS - 1;
    release();
    nowMs += 1;
    release();
    expect(marks).toEqual([
      [['wh_1'], NOW_MS],
      [['wh_1'], NOW_MS + 3 * HOUR_MS],
    ]);
  });
});
