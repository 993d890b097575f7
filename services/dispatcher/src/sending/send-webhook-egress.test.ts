import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { isIP } from 'node:net';
import { createConnectSpy } from '../../../../test/support/receivers/connect-spy.ts';
import { openLoneSender, type LoneSender } from '../../../../test/support/process/lone-sender.ts';
import {
  openRawEndpoint,
  type RawEndpoint,
} from '../../../../test/support/receivers/raw-endpoint.ts';
import type { EgressProxy } from './connect/egress-proxy.ts';
import { REFUSED } from '../../../../test/support/receivers/refused-addresses.ts';

const BLOCKED = {
  outcome: 'egress_blocked',
  statusCode: null,
  response: null,
  responseHeaders: [],
};

let answers: string[] = [];
let lookups = 0;
let sender: LoneSender;
const spy = createConnectSpy();

function openSender(allowLoopback: boolean, proxy?: EgressProxy): LoneSender {
  return openLoneSender({
    ...(proxy && { proxy }),
    policy: { allowLoopback },
    resolve() {
      lookups += 1;
      return Promise.resolve(answers.map((address) => ({ address, family: isIP(address) })));
    },
  });
}

beforeEach(() => {
  [answers, lookups] = [[], 0];
  sender = openSender(false);
  spy.start();
});

afterEach(async () => {
  spy.stop();
  await sender.close();
});

describe.each([
  ['directly', false],
  ['through a proxy', true],
])('an attempt %s', (_how, hasProxy) => {
  let asked: string[] = [];
  beforeEach(async () => {
    await sender.close();
    asked = [];
    const openTunnel = (authority: string): Promise<never> => {
      asked.push(authority);
      return Promise.reject(new Error('no tunnel is needed'));
    };
    sender = openSender(false, hasProxy ? { target: 'address', openTunnel } : undefined);
  });
  afterEach(() => {
    expect(asked).toEqual([]);
  });

  test.each(REFUSED)(
    'an attempt to %s, as a literal or by a name, is egress_blocked',
    async (address) => {
      const host = isIP(address) === 6 ? `[${address}]` : address;
      answers = [address];
      expect(await sender.send(`http://${host}/hook`)).toMatchObject(BLOCKED);
      expect(await sender.send('https://hook.example.com/hook')).toMatchObject(BLOCKED);
      expect([sender.refused, lookups, spy.opened()]).toEqual([['address', 'address'], 1, 0]);
      expect(sender.held()).toBe(0);
    },
  );

  test('an attempt to a name with a public and a private address is egress_blocked', async () => {
    answers = ['8.8.8.8', '10.0.0.1'];
    const attempt = await sender.send('http://hook.example.com/');
    expect(attempt).toMatchObject(BLOCKED);
    expect(JSON.stringify(attempt)).not.toMatch(/10\.0\.0\.1|address/);
    expect([sender.refused, lookups, spy.opened()]).toEqual([['address'], 1, 0]);
  });
});

describe('a redirect [security]', () => {
  let endpoint: RawEndpoint;
  let inside: RawEndpoint;
  beforeEach(async () => {
    await sender.close();
    sender = openSender(true);
    [endpoint, inside] = [await openRawEndpoint(), await openRawEndpoint()];
  });
  afterEach(() => {
    endpoint.close();
    inside.close();
  });

  test.each([301, 302, 303, 307, 308])(
    'a redirect with %d to loopback is not followed',
    async (status) => {
      endpoint.talk = (socket) =>
        socket.end(`HTTP/1.1 ${status} Go\r\nlocation: ${inside.origin}/\r\nrefresh: 0\r\n\r\n`);
      expect(await sender.send(endpoint.origin)).toMatchObject({ outcome: 'http_3xx' });
      expect([spy.opened(), inside.sockets]).toEqual([1, []]);
    },
  );
});
