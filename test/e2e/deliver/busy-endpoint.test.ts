import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';

const MESSAGES = 1_500;
const START = 16;

interface ShownHealth {
  concurrency: { now: number; floor: number; ceiling: number };
}

describe('A healthy endpoint with many messages', () => {
  let posthorn: Posthorn;
  let busy: BusyEndpoint;

  beforeAll(async () => {
    posthorn = await startPosthorn({
      ENDPOINT_CONCURRENCY: String(START),
      ENDPOINT_CONCURRENCY_MAX: '300',
    });
    busy = await startBusyEndpoint();
  }, 120_000);

  afterAll(async () => {
    await busy.close();
    await posthorn.stop();
  }, 60_000);

  it('gets a higher concurrency limit, and none of its attempts is deferred or moves to the slow lane', async () => {
    const { api, dispatcher } = posthorn;
    busy.answerWith(200, 100);
    const { webhookId } = await api.createTarget(busy.url);
    const sent = await sendMany(api, [webhookId], MESSAGES);
    const shown = await eventually('a higher limit is shown', async () => {
      const health = await api.get(`/api/v1/webhooks/${webhookId}/health`);
      const { concurrency } = dataOf<ShownHealth>(health);
      return concurrency.now > START && concurrency;
    });
    expect(shown).toMatchObject({ floor: 1, ceiling: 300 });

    await untilDelivered(api, sent, 60_000);
    expect(busy.mostOpen()).toBeGreaterThan(START);
    expect(busy.mostOpen()).toBeLessThanOrEqual(300);
    expect(busy.total()).toBe(MESSAGES);
    expect(await metricOf(dispatcher, 'posthorn_deferrals_total')).toBe(0);
    expect(await metricOf(dispatcher, 'posthorn_slow_lane_spills_total')).toBe(0);
  }, 120_000);
});
