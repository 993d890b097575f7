import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import {
  readDeliveries,
  sendMany,
  untilDelivered,
  type Sent,
} from '../../support/process/traffic.ts';

const RETRIES = 2_000;
const PER_ENDPOINT = 16;

describe('2,000 retries of one endpoint that are due at once', () => {
  let posthorn: Posthorn;
  let flooded: BusyEndpoint;
  let neighbour: BusyEndpoint;

  beforeAll(async () => {
    posthorn = await startPosthorn({
      RETRY_DELAYS: '10s,1s,2s,4s',
      TOPIC_PARTITIONS: '1',
      ENDPOINT_CONCURRENCY: String(PER_ENDPOINT),
      ENDPOINT_CONCURRENCY_MAX: String(PER_ENDPOINT),
    });
    [flooded, neighbour] = await Promise.all([startBusyEndpoint(), startBusyEndpoint()]);
  }, 120_000);

  afterAll(async () => {
    await Promise.all([flooded.close(), neighbour.close()]);
    await posthorn.stop();
  }, 60_000);

  async function areDue(sent: Sent[]): Promise<boolean> {
    const newest = sent.slice(-200).map(({ deliveryId }) => deliveryId);
    const deliveries = await readDeliveries(posthorn.api, newest);
    return deliveries.every(({ nextAttemptAt }) => Date.parse(String(nextAttemptAt)) < Date.now());
  }

  it('keep to the concurrency of the endpoint, and a first attempt on their partition overtakes them', async () => {
    const { api, retry } = posthorn;
    // A 404, unlike a 500, leaves the circuit closed.
    flooded.answerWith(404);
    const [{ webhookId }, other] = await Promise.all([
      api.createTarget(flooded.url),
      api.createTarget(neighbour.url),
    ]);
    const sent = await sendMany(api, [webhookId], RETRIES);
    await eventually('every first attempt', () => flooded.requests.size === RETRIES, 30_000);
    // They become due while no retry service runs.
    await retry.stop();
    await eventually('all due', () => areDue(sent));

    flooded.answerWith(200, 30);
    await posthorn.start('retry');
    await eventually('the flood', () => flooded.successes.size > 0);
    const { messageId } = await api.send({ webhookId: other.webhookId }, {});
    await eventually('its delivery', () => neighbour.successes.has(messageId));
    expect(flooded.successes.size).toBeLessThan(RETRIES);

    await eventually('all of them', () => flooded.successes.size === RETRIES, 45_000);
    expect(flooded.mostOpen()).toBeLessThanOrEqual(PER_ENDPOINT);
    for (const { messageId: id, attemptCount } of await untilDelivered(api, sent)) {
      expect(flooded.successes.get(id)).toBe(1);
      expect(flooded.requests.get(id)).toBe(attemptCount);
    }
  }, 240_000);
});
