import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { aTime, dataOf, expectFailure } from '../../support/api/expect-answers.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { circuitOf, openCircuit } from '../../support/isolation/circuits.ts';
import { eventually } from '../../support/time/eventually.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import {
  metricOf,
  readDeliveries,
  sendMany,
  untilDelivered,
} from '../../support/process/traffic.ts';

/** The circuit stays open for longer than the test runs. */
const SETTINGS = { CIRCUIT_RESET_MS: '300000', RETRY_DELAYS: '1s,2s' };

describe('An open circuit whose dispatcher is killed', () => {
  let posthorn: Posthorn | undefined;
  let endpoint: BusyEndpoint;

  beforeEach(async () => {
    endpoint = await startBusyEndpoint();
    endpoint.answerWith(500);
  });

  afterEach(async () => {
    await endpoint.close();
    await posthorn?.stop();
  }, 60_000);

  it('stays open for the next dispatcher', async () => {
    posthorn = await startPosthorn(SETTINGS);
    const { api, dispatcher } = posthorn;
    const { webhookId } = await api.createTarget(endpoint.url);
    await openCircuit(posthorn, webhookId);
    const [listed] = dataOf<object[]>(await api.get('/api/v1/circuits'));
    const open = { webhookId, url: endpoint.url, circuit: 'open', since: aTime, probeAt: aTime };
    expect(listed).toMatchObject(open);
    expect(dataOf(await api.get('/api/v1/overview'))).toMatchObject({ openCircuits: 1 });
    await killHard(dispatcher);
    const requests = endpoint.total();
    endpoint.answerWith(200);
    const { deliveryId, messageId } = await api.send({ webhookId }, {});
    await posthorn.start('dispatcher');
    await readTopic(posthorn.env, 'deferred.1m', ({ value }) => value.includes(messageId));
    expect(endpoint.requests.has(messageId)).toBe(false);
    expect(endpoint.total()).toBe(requests);
    expect(await circuitOf(api, webhookId)).toBe('open');
    expect(dataOf(await api.get('/api/v1/circuits'))).toEqual([listed]);
    const [delivery] = await readDeliveries(api, [deliveryId]);
    expect(delivery).toMatchObject({ status: 'pending', attemptCount: 0 });
  });

  it('is not known to the next dispatcher without Redis, which delivers', async () => {
    const [port = 0] = await freePorts(1);
    posthorn = await startPosthorn({ ...SETTINGS, REDIS_URL: `rediss://127.0.0.1:${port}` });
    const { api, dispatcher } = posthorn;
    const { webhookId } = await api.createTarget(endpoint.url);
    await sendMany(api, [webhookId], 10);
    await eventually('an open circuit', async () => {
      return (await metricOf(dispatcher, 'posthorn_circuit_breakers', '"open"')) === 1;
    });
    expectFailure(await api.get('/api/v1/circuits'), 503, 'unavailable');
    expect(dataOf(await api.get('/api/v1/overview'))).toMatchObject({ openCircuits: null });
    endpoint.answerWith(200);
    await killHard(dispatcher);
    await posthorn.start('dispatcher');
    await untilDelivered(api, await sendMany(api, [webhookId], 10));
  });
});
