import { expect, test } from '@jest/globals';
import { createRandom } from '../../../test/support/samples/seeded-random.ts';
import { startFaultyProxy } from './faulty-proxy.ts';
import { sendMany, startCountingApi } from './send-through-faults.ts';

test('each of many messages is accepted once through resets, delays, time-outs, 429 and 503', async () => {
  const sends = 300;
  const api = await startCountingApi(sends);
  const faults = { share: 0.3, random: createRandom(17) };
  const proxy = await startFaultyProxy(api.baseUrl, faults);
  try {
    await sendMany({
      baseUrl: proxy.baseUrl,
      apiKey: 'phk_1',
      appId: 'app_1',
      sends,
      timeoutMs: 500,
    });
  } finally {
    await Promise.all([proxy.close(), api.close()]);
  }
  expect(api.accepted.filter((count) => count !== 1)).toHaveLength(0);
  expect(Math.min(...Object.values(proxy.counts))).toBeGreaterThan(0);
});
