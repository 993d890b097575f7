import { beforeEach, expect, test } from '@jest/globals';
import { createLastUsed, type LastUsed } from './last-used.ts';

let nowMs: number;
let written: [string, number][][];
let isAway: boolean;
let lastUsed: LastUsed;

beforeEach(() => {
  [nowMs, written, isAway] = [1_000_000, [], false];
  lastUsed = createLastUsed({
    write(usedAtMs) {
      if (isAway) return Promise.reject(new Error('MongoDB is away'));
      written.push([...usedAtMs]);
      return Promise.resolve();
    },
    nowMs: () => nowMs,
    logger: { warn: () => undefined },
  });
});

test('the last use of a key is written once a minute, however often it is used', async () => {
  for (let second = 0; second < 120; second += 1) {
    lastUsed.note('key_1');
    if (second % 5 === 0) await lastUsed.tick();
    nowMs += 1_000;
  }
  expect(written).toEqual([[['key_1', 1_000_000]], [['key_1', 1_060_000]]]);
});

test('the use of a key is written after its minute even when it is not used again', async () => {
  lastUsed.note('key_1');
  await lastUsed.tick();
  nowMs += 1_000;
  lastUsed.note('key_1');
  await lastUsed.tick();
  nowMs += 60_000;
  await lastUsed.tick();
  expect(written).toEqual([[['key_1', 1_000_000]], [['key_1', 1_001_000]]]);
});

test('a use that could not be written is written in the next round, and none without a use', async () => {
  lastUsed.note('key_1');
  isAway = true;
  await lastUsed.tick();
  isAway = false;
  await lastUsed.tick();
  await lastUsed.tick();
  expect(written).toEqual([[['key_1', 1_000_000]]]);
});
