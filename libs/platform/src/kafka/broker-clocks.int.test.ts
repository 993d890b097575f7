import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openScratchLog, type ScratchLog } from '../../../../test/support/stores/scratch-log.ts';

import { eventually } from '../../../../test/support/time/eventually.ts';

let scratch: ScratchLog;

beforeAll(async () => {
  scratch = await openScratchLog();
});

afterAll(() => scratch.records.close());

test('The clock of a broker is known from the times that it gives to records, not ahead of those', async () => {
  const topic = await scratch.newTopic('stamped', 1);
  const { aheadMs } = scratch.records.brokerClocks;
  expect(aheadMs(topic, 0)).toBe(-Infinity);
  await scratch.publish(topic, ['first']);
  // The broker is on this machine.
  const wallAheadMs = Date.now() - performance.now();
  expect(aheadMs(topic, 0)).toBeLessThan(wallAheadMs + 5);
  expect(aheadMs(topic, 0)).toBeGreaterThan(wallAheadMs - 60_000);
  const writtenAtMs = performance.now();
  await scratch.publish(topic, ['second']);
  const times: number[] = [];
  const member = await scratch.consume(topic, ({ timestampMs }) =>
    Promise.resolve(void times.push(timestampMs)),
  );
  await eventually('both', () => times.length === 2);
  await member.stop(0);
  expect(writtenAtMs + aheadMs(topic, 0)).toBeLessThanOrEqual(times[1] ?? 0);
});
