import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { openLoneSender, type LoneSender } from '../../../../test/support/process/lone-sender.ts';
import {
  startEarlyEndpoint,
  type EarlyEndpoint,
} from '../../../../test/support/receivers/early-endpoint.ts';
import { selfSigned } from '../../../../test/support/receivers/self-signed.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createProxy } from './connect/egress-proxy.ts';

const NAME = 'hook.example.com';
const own = selfSigned(NAME);
const OWN_TLS = { id: 'own', client: null, ca: own.cert };
/** More than a connection takes at once: when the endpoint answers, a part of it is not written yet. */
const LARGE = Buffer.alloc(16_000_000, 'x');
/** Of each, half or more failed when a failed write ended the connection at once. */
const TRIES = 12;
const TOO_LARGE = 'HTTP/1.1 413 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno';

let sender: LoneSender;
let endpoint: EarlyEndpoint;

const url = (isTls: boolean): string =>
  isTls ? `https://${NAME}:${endpoint.port}/` : `http://127.0.0.1:${endpoint.port}/`;
const send = (isTls: boolean, payload: Buffer): Promise<Attempt> =>
  sender.send(url(isTls), isTls ? OWN_TLS : undefined, payload);

async function sendMany(isTls: boolean): Promise<Attempt[]> {
  const attempts = [];
  for (let n = 0; n < TRIES; n += 1) attempts.push(await send(isTls, LARGE));
  return attempts;
}

beforeEach(() => {
  const resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 as const }]);
  sender = openLoneSender({ resolve });
});
afterEach(async () => {
  await sender.close();
  await endpoint.close();
});

describe.each([
  ['http', false],
  ['https', true],
])('an endpoint by %s that answers before it has read a large body, and closes', (_by, isTls) => {
  const identity = isTls ? own : null;
  test.each([
    [TOO_LARGE, { outcome: 'http_4xx', statusCode: 413, response: 'no' }],
    ['HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', { outcome: 'success', response: 'ok' }],
    ['HTTP/1.0 401 No\r\n\r\n', { outcome: 'http_4xx', statusCode: 401 }],
  ])('is judged by its status: %j', async (answer, judged) => {
    endpoint = await startEarlyEndpoint({ answer, identity });
    expect(await sendMany(isTls)).toMatchObject(Array(TRIES).fill(judged));
  });

  test('is judged by its status through a proxy too', async () => {
    endpoint = await startEarlyEndpoint({ answer: TOO_LARGE, identity, isTunnel: true });
    await sender.close();
    const limits = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000, probeTimeoutMs: 5_000 };
    const proxyUrl = new URL(`http://127.0.0.1:${endpoint.port}`);
    const onResult = () => undefined;
    sender = openLoneSender({
      proxy: createProxy({ url: proxyUrl, tls: null, target: 'name', ...limits, onResult }),
      resolve: () => Promise.resolve([]),
    });
    const judged = { outcome: 'http_4xx', statusCode: 413 };
    expect(await sendMany(isTls)).toMatchObject(Array(TRIES).fill(judged));
  });

  test('is asked once on a kept connection', async () => {
    endpoint = await startEarlyEndpoint({ answer: TOO_LARGE, identity, readFirst: 1 });
    const outcomes = [];
    for (let n = 0; n < TRIES; n += 1) {
      outcomes.push((await send(isTls, Buffer.from('{}'))).outcome);
      await eventually('the connection is idle', () => sender.idle() === 1);
      outcomes.push((await send(isTls, LARGE)).outcome);
    }
    expect(outcomes).toEqual(Array(TRIES).fill(['success', 'http_4xx']).flat());
    expect(sender.opened).toHaveLength(TRIES);
  });

  test('an endpoint that closes early and sends nothing is a connect_error', async () => {
    endpoint = await startEarlyEndpoint({ answer: '', identity });
    expect(await sendMany(isTls)).toMatchObject(
      Array(TRIES).fill({ outcome: 'connect_error', statusCode: null }),
    );
  });
});
