import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress/egress-rules.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import {
  openRawEndpoint,
  type RawEndpoint,
} from '../../../../../test/support/receivers/raw-endpoint.ts';
import { createDeliveryAgent, type DeliveryAgent } from './delivery-agent.ts';
import { createIdleConnections, type IdleConnections } from './idle-connections.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

let agent: DeliveryAgent;
let idle: IdleConnections;
let reuses: boolean[];
let endpoints: RawEndpoint[];

beforeEach(async () => {
  reuses = [];
  idle = createIdleConnections({ maxIdle: 2, onSent: (isReused) => reuses.push(isReused) });
  agent = createDeliveryAgent({
    policy: { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true },
    connectTimeoutMs: 5_000,
    hosts: { resolve: () => Promise.resolve([]), forget: () => undefined },
    proxy: null,
    onRefused: () => undefined,
    onOpened: idle.add,
  });
  endpoints = await Promise.all(Array.from({ length: 4 }, openRawEndpoint));
  for (const endpoint of endpoints) endpoint.talk = (socket) => socket.write(OK);
});

afterEach(async () => {
  idle.stop();
  await agent.destroy();
  for (const endpoint of endpoints) endpoint.close();
});

async function sendTo(n: number): Promise<void> {
  const origin = endpoints[n]?.origin ?? '';
  await new Promise<void>((resolve, reject) => {
    agent.dispatch(
      { origin, path: '/', method: 'POST' },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData: () => undefined,
        onResponseEnd() {
          resolve();
        },
        onResponseError(_controller, error) {
          reject(error);
        },
      },
    );
  });
  await eventually('its connection is idle', () => {
    const stats = agent.stats[origin];
    return !stats || ('free' in stats && stats.free > 0);
  });
}

const open = (): number[] =>
  endpoints.map(({ sockets }) => sockets.filter((socket) => !socket.destroyed).length);

describe('a connection', () => {
  test('is reused, and each request is counted by whether it reused one', async () => {
    await sendTo(0);
    await sendTo(0);
    await sendTo(1);
    expect(reuses).toEqual([false, true, false]);
    expect(endpoints[0]?.sockets).toHaveLength(1);
  });

  test('is closed when it has been idle for longest and too many are idle', async () => {
    for (const n of [0, 1, 0, 2]) await sendTo(n);
    await endpoints[1]?.allClosed();
    expect(open()).toEqual([1, 0, 1, 0]);
    await sendTo(1);
    expect(reuses).toEqual([false, false, true, false, false]);
  });

  test('is not closed while it carries a request, however many are idle', async () => {
    const [slow] = endpoints;
    let answer: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      if (!slow) return;
      slow.talk = (socket) => {
        answer = () => socket.write(OK);
        resolve();
      };
    });
    const first = sendTo(0);
    await asked;
    for (const n of [1, 2, 3]) await sendTo(n);
    await endpoints[1]?.allClosed();
    expect(open()).toEqual([1, 0, 1, 1]);
    answer();
    await first;
  });

  test('no longer counts as idle once its endpoint has closed it', async () => {
    await sendTo(0);
    endpoints[0]?.sockets[0]?.destroy();
    await eventually('its pool is gone', () => Object.keys(agent.stats).length === 0);
    await sendTo(1);
    await sendTo(2);
    expect(open()).toEqual([0, 1, 1, 0]);
  });
});

test('an origin keeps no pool once its last connection is closed', async () => {
  for (const n of [0, 1, 2, 3]) await sendTo(n);
  await Promise.all([endpoints[0]?.allClosed(), endpoints[1]?.allClosed()]);
  await eventually('two pools are left', () => Object.keys(agent.stats).length === 2);
});
