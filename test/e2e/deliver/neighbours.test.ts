import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';

const PER_ENDPOINT = 16;
const TO_HANGING = 300;
/** Turns are given at the pace of an endpoint that hangs for 5 s: 94 s for all of them. */
const ALL_WITHIN_MS = 150_000;

describe('The neighbours of an endpoint that never responds', () => {
  let posthorn: Posthorn;
  let hanging: BusyEndpoint;
  let healthy: BusyEndpoint[];

  beforeAll(async () => {
    posthorn = await startPosthorn({
      DELIVERY_TIMEOUT_MS: '5000',
      CIRCUIT_RESET_MS: '1000',
      ENDPOINT_CONCURRENCY: String(PER_ENDPOINT),
      ENDPOINT_CONCURRENCY_MAX: String(PER_ENDPOINT),
      RETRY_DELAYS: '1s,2s,4s,4s,4s,4s',
    });
    hanging = await startBusyEndpoint();
    healthy = await Promise.all(Array.from({ length: 5 }, startBusyEndpoint));
  }, 120_000);

  afterAll(async () => {
    await Promise.all([hanging, ...healthy].map((each) => each.close()));
    await posthorn.stop();
  }, 60_000);

  it('get all their messages meanwhile, and it gets its own once it responds', async () => {
    const { api, dispatcher } = posthorn;
    hanging.hold();
    const { webhookId: sick } = await api.createTarget(hanging.url);
    const targets = await Promise.all(healthy.map(({ url }) => api.createTarget(url)));
    const well = targets.map(({ webhookId }) => webhookId);
    const [toHanging, toHealthy] = await Promise.all([
      sendMany(api, [sick], TO_HANGING),
      sendMany(api, well, 60),
    ]);
    await untilDelivered(api, toHealthy);
    expect(hanging.successes.size).toBe(0);
    // Not necessarily now: the first timeouts may have opened its circuit already.
    await eventually('all its places taken', () => hanging.mostOpen() === PER_ENDPOINT);
    await eventually('a move to the slow lane', async () => {
      return (await metricOf(dispatcher, 'posthorn_slow_lane_spills_total')) > 0;
    });
    await eventually('a timeout', async () => {
      return (await metricOf(dispatcher, 'posthorn_delivery_attempts_total', '"timeout"')) > 0;
    });
    hanging.answerWith(200);

    const deliveries = await untilDelivered(api, toHanging, ALL_WITHIN_MS);
    expect(hanging.mostOpen()).toBe(PER_ENDPOINT);
    for (const { messageId, attemptCount, attempts } of deliveries) {
      // Posthorn saw one success. The endpoint sent more where its response came just after the timeout.
      expect(attempts.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
      expect(attempts.at(-1)?.statusCode).toBe(200);
      expect(hanging.successes.get(messageId)).toBeGreaterThanOrEqual(1);
      expect(hanging.requests.get(messageId)).toBe(attemptCount);
    }
    for (const endpoint of healthy) expect(endpoint.total()).toBe(60);
  }, 240_000);
});
