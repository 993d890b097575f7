import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { circuitOf, openCircuit } from '../../support/isolation/circuits.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import {
  metricOf,
  readDeliveries,
  sendMany,
  untilDelivered,
} from '../../support/process/traffic.ts';

const DEFERRALS = 'posthorn_circuit_breaker_deferrals_total';

describe('An endpoint that fails again and again', () => {
  let posthorn: Posthorn;
  let failing: BusyEndpoint;
  let healthy: BusyEndpoint;

  beforeAll(async () => {
    posthorn = await startPosthorn({
      CIRCUIT_RESET_MS: '8000',
      RETRY_DELAYS: '1s,8s,8s',
    });
    [failing, healthy] = await Promise.all([startBusyEndpoint(), startBusyEndpoint()]);
  }, 120_000);

  afterAll(async () => {
    await Promise.all([failing.close(), healthy.close()]);
    await posthorn.stop();
  }, 60_000);

  it('gets nothing while its circuit is open, loses no attempt, and gets everything when it works again', async () => {
    const { api, dispatcher } = posthorn;
    failing.answerWith(500);
    const { webhookId } = await api.createTarget(failing.url);
    const { webhookId: other } = await api.createTarget(healthy.url);
    const failed = await openCircuit(posthorn, webhookId);
    const requestsAtOpening = failing.total();
    const deferredBefore = await metricOf(dispatcher, DEFERRALS);

    const waiting = await sendMany(api, [webhookId], 50);
    const toHealthy = await sendMany(api, [other], 50);
    await eventually('all deferred', async () => {
      return (await metricOf(dispatcher, DEFERRALS)) >= deferredBefore + waiting.length;
    });
    const shown = await readDeliveries(
      api,
      waiting.map(({ deliveryId }) => deliveryId),
    );
    expect(await circuitOf(api, webhookId)).toBe('open');
    expect(failing.total()).toBe(requestsAtOpening);
    for (const each of shown) expect(each).toMatchObject({ status: 'pending', attemptCount: 0 });
    await untilDelivered(api, toHealthy);
    expect(await circuitOf(api, other)).toBe('closed');
    expect(healthy.total()).toBe(50);

    failing.answerWith(200);
    const deliveries = await untilDelivered(api, [...failed, ...waiting], 45_000);
    expect(await circuitOf(api, webhookId)).toBe('closed');
    for (const { messageId, attemptCount } of deliveries) {
      expect(failing.successes.get(messageId)).toBe(1);
      expect(failing.requests.get(messageId)).toBe(attemptCount);
    }
  });

  it('gets a test message while its circuit is open, and a success closes the circuit', async () => {
    const { api } = posthorn;
    failing.answerWith(500);
    const { webhookId } = await api.createTarget(failing.url);
    await openCircuit(posthorn, webhookId);
    failing.answerWith(200);
    const answer = await api.post(`/api/v1/webhooks/${webhookId}/test`, undefined);
    const { id: deliveryId, messageId } = dataOf<ShownDelivery>(answer, 202);
    await untilDelivered(api, [{ deliveryId, messageId }]);
    expect(await circuitOf(api, webhookId)).toBe('closed');
  });

  it('keeps its open circuit to itself when the webhook gets another URL', async () => {
    const { api } = posthorn;
    failing.answerWith(500);
    const { webhookId } = await api.createTarget(failing.url);
    await openCircuit(posthorn, webhookId);
    dataOf(await api.put(`/webhooks/${webhookId}`, { url: healthy.url }));
    const [sent] = await sendMany(api, [webhookId], 1);
    await eventually('the new message', () => healthy.successes.has(String(sent?.messageId)));
    await eventually('a closed circuit', async () => {
      return (await circuitOf(api, webhookId)) === 'closed';
    });
    expect(failing.requests.has(String(sent?.messageId))).toBe(false);
  });
});
