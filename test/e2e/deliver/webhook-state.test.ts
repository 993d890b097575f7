import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import type { ApiClient } from '../../support/api/api-client.ts';
import { aTime, dataOf, expectFailure } from '../../support/api/expect-answers.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { circuitOf, openCircuit } from '../../support/isolation/circuits.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import {
  metricOf,
  readDeliveries,
  sendMany,
  untilDelivered,
} from '../../support/process/traffic.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { startReceiver } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import { CLOCK_MS } from '../../support/time/clocks.ts';
import { eventually } from '../../support/time/eventually.ts';

const CACHE_REQUESTS = 'posthorn_config_cache_requests_total';
const DEFERRALS = 'posthorn_circuit_breaker_deferrals_total';
/** Enough to see that everything waits, and to replace the dispatcher. */
const PAUSE_SECONDS = 15;

let posthorn: Posthorn<'dispatcher'>;
let api: ApiClient;

beforeAll(async () => {
  posthorn = await startPosthorn(
    { CIRCUIT_RESET_MS: '20000', RETRY_DELAYS: '1s,8s,20s' },
    { processes: ['dispatcher'] },
  );
  ({ api } = posthorn);
}, 120_000);

afterAll(() => posthorn.stop());

/** Expects that a webhook gets nothing more at its old URL, and nothing at all after it is disabled. */
async function expectChangesToHold(): Promise<void> {
  const [before, after] = await Promise.all([startBusyEndpoint(), startBusyEndpoint()]);
  const { webhookId } = await api.createTarget(before.url);
  await untilDelivered(api, [await api.send({ webhookId }, {})]);
  dataOf(await api.put(`/webhooks/${webhookId}`, { url: after.url }));
  await eventually('a message at the new address', async () => {
    const sent = await api.send({ webhookId }, {});
    await untilDelivered(api, [sent]);
    return after.requests.has(sent.messageId);
  });
  const atOldAddress = before.total();
  const sent = await Promise.all(Array.from({ length: 20 }, () => api.send({ webhookId }, {})));
  await untilDelivered(api, sent);
  expect(before.total()).toBe(atOldAddress);

  dataOf(await api.put(`/webhooks/${webhookId}`, { disabled: true }));
  const atNewAddress = after.total();
  const { deliveryId } = await api.send({ webhookId }, {});
  await eventually('a cancelled delivery', async () => {
    const { body } = await api.get(`/api/v1/deliveries/${deliveryId}`);
    return (body.data as { status: string }).status === 'cancelled';
  });
  expect(after.total()).toBe(atNewAddress);
  await Promise.all([before.close(), after.close()]);
}

describe('A changed webhook', () => {
  it(
    'gets nothing more at its old URL, and nothing at all after it is disabled',
    expectChangesToHold,
  );
});

describe('A webhook that was used before its dispatcher was replaced', () => {
  it('is cached before the first message comes to it', async () => {
    const receiver = await startReceiver();
    const { webhookId } = await api.createTarget(receiver.url);
    await untilDelivered(api, await sendMany(api, [webhookId], 1));
    // A start on a machine that stands still may be over before it has loaded anything.
    await eventually('a dispatcher that has read it when it is ready', async () => {
      await killHard(posthorn.dispatcher);
      posthorn.dispatcher = await posthorn.startProcess('dispatcher');
      return (await metricOf(posthorn.dispatcher, CACHE_REQUESTS, '"webhooks",result="miss"')) > 0;
    });
    await untilDelivered(api, await sendMany(api, [webhookId], 1));
    await receiver.close();
  });
});

describe('An endpoint that asks for a pause', () => {
  it('gets nothing until the pause of 15 s is over, and then its learned rate, also from the dispatcher that replaces a killed one', async () => {
    const receiver = await startReceiver();
    const { webhookId } = await api.createTarget(receiver.url);
    receiver.answerWith((response) => {
      response.writeHead(429, { 'retry-after': String(PAUSE_SECONDS) }).end();
    });
    const refused = await sendMany(api, [webhookId], 1);
    const pausedUntil = await eventually('the pause', async () => {
      const health = await api.get(`/api/v1/webhooks/${webhookId}/health`);
      return dataOf<{ pausedUntil: string | null }>(health).pausedUntil;
    });
    const [first] = receiver.received;
    expect(Date.parse(pausedUntil) - Number(first?.atMs)).toBeGreaterThanOrEqual(
      PAUSE_SECONDS * 1_000 - CLOCK_MS,
    );
    receiver.answerWith((response) => response.writeHead(200).end());
    const during = await sendMany(api, [webhookId], 40);
    await eventually('they wait in memory', async () => {
      return (await metricOf(posthorn.dispatcher, 'posthorn_deliveries_waiting')) >= during.length;
    });
    await killHard(posthorn.dispatcher);
    posthorn.dispatcher = await posthorn.startProcess('dispatcher');

    const deliveries = await untilDelivered(api, [...refused, ...during]);
    expect(receiver.received[0]).toBe(first);
    const later = receiver.received.slice(1).map(({ atMs }) => atMs);
    expect(later).toHaveLength(during.length + 1);
    // The pause counts from the response, which the endpoint wrote just after it got the request.
    const pausedMs = Math.min(...later) - Number(first?.atMs);
    expect(pausedMs).toBeGreaterThan(PAUSE_SECONDS * 1_000 - CLOCK_MS);
    // The dispatcher that was killed had learned to begin with 10/s. A new endpoint gets all of them at once.
    expect(Math.max(...later) - Math.min(...later)).toBeGreaterThan(1_000);
    // The pause used up no attempt: one for each message, and a second one for the refused message.
    expect(deliveries.map(({ attemptCount }) => attemptCount).sort()).toEqual([
      ...during.map(() => 1),
      2,
    ]);
    await receiver.close();
  }, 120_000);
});

describe('An endpoint that fails again and again', () => {
  let failing: BusyEndpoint;
  let healthy: BusyEndpoint;
  let webhookId: string;

  beforeAll(async () => {
    [failing, healthy] = await Promise.all([startBusyEndpoint(), startBusyEndpoint()]);
  });

  beforeEach(async () => {
    failing.answerWith(500);
    ({ webhookId } = await api.createTarget(failing.url));
  });

  /** Otherwise its retries would open the circuit again during the next story. */
  afterEach(async () => {
    await api.delete(`/webhooks/${webhookId}`);
  });

  afterAll(() => Promise.all([failing.close(), healthy.close()]));

  it('gets nothing while its circuit is open for 20 s, loses no attempt, and gets everything when it works again', async () => {
    const { dispatcher } = posthorn;
    const { webhookId: other } = await api.createTarget(healthy.url);
    const failed = await openCircuit(posthorn, webhookId);
    const requestsAtOpening = failing.total();
    const deferredBefore = await metricOf(dispatcher, DEFERRALS);

    const [waiting, toHealthy] = await Promise.all([
      sendMany(api, [webhookId], 50),
      sendMany(api, [other], 50),
    ]);
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
    // What comes back while a probe is under way, or fails, waits for three times as long as before: in
    // the topic of one minute.
    const deliveries = await untilDelivered(api, [...failed, ...waiting], 180_000);
    expect(await circuitOf(api, webhookId)).toBe('closed');
    for (const { messageId, attemptCount } of deliveries) {
      expect(failing.successes.get(messageId)).toBe(1);
      expect(failing.requests.get(messageId)).toBe(attemptCount);
    }
  }, 300_000);

  it('gets a test message while its circuit is open, and a success closes the circuit', async () => {
    await openCircuit(posthorn, webhookId);
    failing.answerWith(200);
    const answer = await api.post(`/api/v1/webhooks/${webhookId}/test`, undefined);
    const { id: deliveryId, messageId } = dataOf<ShownDelivery>(answer, 202);
    await untilDelivered(api, [{ deliveryId, messageId }]);
    expect(await circuitOf(api, webhookId)).toBe('closed');
  });

  it('keeps its open circuit to itself when the webhook gets another URL', async () => {
    await openCircuit(posthorn, webhookId);
    dataOf(await api.put(`/webhooks/${webhookId}`, { url: healthy.url }));
    const [sent] = await sendMany(api, [webhookId], 1);
    await eventually('the new message', () => healthy.successes.has(String(sent?.messageId)));
    await eventually('a closed circuit', async () => {
      return (await circuitOf(api, webhookId)) === 'closed';
    });
    expect(failing.requests.has(String(sent?.messageId))).toBe(false);
  });

  it('keeps its open circuit when its dispatcher is killed', async () => {
    await posthorn.dispatcher.stop();
    // The circuit stays open for longer than the test runs.
    const patient = { CIRCUIT_RESET_MS: '300000' };
    const dispatcher = await posthorn.startProcess('dispatcher', patient);
    await openCircuit(posthorn, webhookId);
    const circuits = dataOf<{ webhookId: string }[]>(await api.get('/api/v1/circuits'));
    const listed = circuits.find((each) => each.webhookId === webhookId);
    const open = { webhookId, url: failing.url, circuit: 'open', since: aTime, probeAt: aTime };
    expect(listed).toMatchObject(open);
    expect(dataOf(await api.get('/api/v1/overview'))).toMatchObject({
      openCircuits: circuits.length,
    });
    await killHard(dispatcher);
    const requests = failing.total();
    failing.answerWith(200);
    const { deliveryId, messageId } = await api.send({ webhookId }, {});
    posthorn.dispatcher = await posthorn.startProcess('dispatcher', patient);
    await readTopic(posthorn.env, 'deferred.1m', ({ value }) => value.includes(messageId));
    expect(failing.requests.has(messageId)).toBe(false);
    expect(failing.total()).toBe(requests);
    expect(await circuitOf(api, webhookId)).toBe('open');
    expect(dataOf(await api.get('/api/v1/circuits'))).toEqual(circuits);
    const [delivery] = await readDeliveries(api, [deliveryId]);
    expect(delivery).toMatchObject({ status: 'pending', attemptCount: 0 });
  });

  it('gets messages from the next dispatcher when Redis is away, which knows no open circuit', async () => {
    const [port = 0] = await freePorts(1);
    const withoutRedis = { CIRCUIT_RESET_MS: '300000', REDIS_URL: `rediss://127.0.0.1:${port}` };
    await Promise.all([posthorn.gateway.stop(), posthorn.dispatcher.stop()]);
    const [dispatcher] = await Promise.all([
      posthorn.startProcess('dispatcher', withoutRedis),
      posthorn.start('gateway', withoutRedis),
    ]);
    await sendMany(api, [webhookId], 10);
    await eventually('an open circuit', async () => {
      return (await metricOf(dispatcher, 'posthorn_circuit_breakers', '"open"')) === 1;
    });
    expectFailure(await api.get('/api/v1/circuits'), 503, 'unavailable');
    expect(dataOf(await api.get('/api/v1/overview'))).toMatchObject({ openCircuits: null });
    failing.answerWith(200);
    await killHard(dispatcher);
    await posthorn.startProcess('dispatcher', withoutRedis);
    await untilDelivered(api, await sendMany(api, [webhookId], 10));
  });

  it(
    'gets nothing at the old URL of its webhook, and nothing once it is disabled, also without Redis',
    expectChangesToHold,
  );
});
