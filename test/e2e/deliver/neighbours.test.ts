import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import {
  metricOf,
  readDeliveries,
  sendMany,
  untilDelivered,
  type Sent,
} from '../../support/process/traffic.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';

const PER_ENDPOINT = 16;
const TO_HANGING = 300;
/** An endpoint that hangs for 5 s gets its attempts at that pace: 94 s for all of them. */
const ALL_WITHIN_MS = 150_000;
const RETRIES = 1_000;

/** One partition, so that everything is behind or in front of everything else. */
let posthorn: Posthorn;
let endpoints: BusyEndpoint[] = [];

beforeAll(async () => {
  posthorn = await startPosthorn({
    DELIVERY_TIMEOUT_MS: '5000',
    CIRCUIT_RESET_MS: '1000',
    ENDPOINT_CONCURRENCY: String(PER_ENDPOINT),
    ENDPOINT_CONCURRENCY_MAX: String(PER_ENDPOINT),
    RETRY_DELAYS: '8s,1s,2s,4s,4s,4s',
    TOPIC_PARTITIONS: '1',
  });
}, 120_000);

afterEach(async () => {
  await Promise.all(endpoints.map((each) => each.close()));
});

afterAll(() => posthorn.stop());

async function startEndpoints(count: number): Promise<BusyEndpoint[]> {
  endpoints = await Promise.all(Array.from({ length: count }, startBusyEndpoint));
  return endpoints;
}

describe('1,000 retries of one endpoint that are due at once', () => {
  async function areDue(sent: Sent[]): Promise<boolean> {
    const newest = sent.slice(-200).map(({ deliveryId }) => deliveryId);
    const deliveries = await readDeliveries(posthorn.api, newest);
    return deliveries.every(({ nextAttemptAt }) => Date.parse(String(nextAttemptAt)) < Date.now());
  }

  it('keep to the concurrency of the endpoint, and a first attempt on their partition overtakes them', async () => {
    const { api, retry } = posthorn;
    const [flooded, neighbour] = await startEndpoints(2);
    if (!flooded || !neighbour) throw new Error('not started');
    // A 404, unlike a 500, leaves the circuit closed.
    flooded.answerWith(404);
    const [{ webhookId }, other] = await Promise.all([
      api.createTarget(flooded.url),
      api.createTarget(neighbour.url),
    ]);
    const sent = await sendMany(api, [webhookId], RETRIES);
    await eventually('every first attempt', () => flooded.requests.size === RETRIES);
    // They become due while no retry service runs.
    await retry.stop();
    await eventually('all due', () => areDue(sent));

    // Sixteen at once: the flood lasts for six seconds at least.
    flooded.answerWith(200, 100);
    posthorn.retry = await posthorn.start('retry');
    await eventually('the flood', () => flooded.successes.size > 0);
    const { messageId } = await api.send({ webhookId: other.webhookId }, {});
    await eventually('its delivery', () => neighbour.successes.has(messageId));
    expect(flooded.successes.size).toBeLessThan(RETRIES);

    await eventually('all of them', () => flooded.successes.size === RETRIES);
    expect(flooded.mostOpen()).toBeLessThanOrEqual(PER_ENDPOINT);
    for (const { messageId: id, attemptCount } of await untilDelivered(api, sent)) {
      expect(flooded.successes.get(id)).toBe(1);
      expect(flooded.requests.get(id)).toBe(attemptCount);
    }
  }, 240_000);
});

describe('The neighbours of an endpoint that never responds', () => {
  it('get all their messages meanwhile, and it gets its own once it responds, after time-outs of 5 s', async () => {
    const { api, dispatcher } = posthorn;
    const [hanging, ...healthy] = await startEndpoints(6);
    if (!hanging) throw new Error('not started');
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
    // To the slow lane, or to a delay topic once the first timeouts have opened its circuit.
    await eventually('a move out of the way', async () => {
      const spills = await metricOf(dispatcher, 'posthorn_slow_lane_spills_total');
      return spills + (await metricOf(dispatcher, 'posthorn_deferrals_total')) > 0;
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
