import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, sendMany, untilDelivered, untilMetric } from '../../support/process/traffic.ts';
import { startConnectProxy, type ConnectProxy } from '../../support/receivers/connect-proxy.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

const DEFERRALS = 'posthorn_deferrals_total';
const PASSWORD = 'hunter2';
let posthorn: Posthorn;
let proxy: ConnectProxy;
let receiver: Receiver;

beforeAll(async () => {
  [proxy, receiver] = [await startConnectProxy(), await startReceiver()];
  const url = new URL(proxy.url);
  [url.username, url.password] = ['me', PASSWORD];
  posthorn = await startPosthorn({ EGRESS_PROXY_URL: url.href, CIRCUIT_RESET_MS: '1000' });
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
  await Promise.all([proxy.close(), receiver.close()]);
}, 60_000);

it('A delivery waits while the proxy fails, and is made with its first attempt once it works [security]', async () => {
  const { api, dispatcher } = posthorn;
  proxy.behave({ kind: 'answer', status: 407 });
  const { webhookId } = await api.createTarget(receiver.url);
  const sent = await sendMany(api, [webhookId], 20);
  // More often than the endpoint has attempts, and than failures that open a circuit.
  await untilMetric(dispatcher, DEFERRALS, 'because="proxy"', 40);
  expect(receiver.received).toEqual([]);

  const { host, port } = new URL(receiver.url);
  proxy.behave({ kind: 'tunnel', port: Number(port) });
  const deliveries = await untilDelivered(api, sent, 45_000);
  expect(deliveries.map(({ attemptCount }) => attemptCount)).toEqual(deliveries.map(() => 1));
  expect(receiver.received).toHaveLength(20);
  expect(new Set(proxy.asked)).toEqual(new Set([host]));
  expect(await metricOf(dispatcher, DEFERRALS, 'because="circuit"')).toBe(0);
  expect(dispatcher.output()).not.toContain(PASSWORD);
}, 90_000);
