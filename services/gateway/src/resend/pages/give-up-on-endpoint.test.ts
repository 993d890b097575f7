import { expect, test } from '@jest/globals';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import { createGiveUpRule } from './give-up-on-endpoint.ts';

const MINUTE_MS = 60_000;
const part = sampleResend('rsnd_1/wh_1', { partOf: 'rsnd_1', webhookId: 'wh_1' });

test('an endpoint is not given up while nobody knows whether its circuit is open', async () => {
  let nowMs = 0;
  let isRedisUp = false;
  const read = () => (isRedisUp ? Promise.resolve(1) : Promise.reject(new Error('Redis is away')));
  const { shouldGiveUp } = createGiveUpRule({ circuits: { read }, nowMs: () => nowMs }, part);
  nowMs = 5 * MINUTE_MS + 1;
  expect(await shouldGiveUp()).toBe(false);
  isRedisUp = true;
  expect(await shouldGiveUp()).toBe(true);
});

test('each success starts the five minutes again', async () => {
  let nowMs = 0;
  const circuits = { read: () => Promise.resolve(1) };
  const { report, shouldGiveUp } = createGiveUpRule({ circuits, nowMs: () => nowMs }, part);
  nowMs = 4 * MINUTE_MS;
  report(1);
  expect(await shouldGiveUp()).toBe(false);
  nowMs = 9 * MINUTE_MS;
  report(1);
  expect(await shouldGiveUp()).toBe(false);
  nowMs += 1;
  expect(await shouldGiveUp()).toBe(true);
});
