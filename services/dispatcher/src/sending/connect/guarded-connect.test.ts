import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  cidrs,
  type EgressPolicy,
  type EgressRefusal,
  STRICT_EGRESS,
} from '@posthorn/domain/egress.ts';
import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net';
import { createConnectSpy } from '../../../../../test/support/receivers/connect-spy.ts';
import { REFUSED } from '../../../../../test/support/receivers/refused-addresses.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { createGuardedConnect, EgressBlockedError } from './guarded-connect.ts';
import {
  type AddressRecord,
  createHostResolver,
  LookupFailedError,
  type Resolve,
} from './resolve-host.ts';
import { createTlsSessions } from './tls-sessions.ts';

const strict: EgressPolicy = { ...STRICT_EGRESS, allowHttp: true };
const loopback: EgressPolicy = { ...strict, allowLoopback: true };

type Callback = Parameters<ReturnType<typeof createGuardedConnect>>[1];

const spy = createConnectSpy();
const sockets: Socket[] = [];
let refused: EgressRefusal[] = [];
let forgotten: string[] = [];
let server: Server;
let port = 0;

beforeAll(async () => {
  server = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
beforeEach(() => {
  [refused, forgotten] = [[], []];
  spy.start();
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => {
  spy.stop();
  server.close();
});

const answering = (...addresses: string[]): Resolve & { asked: string[] } => {
  const asked: string[] = [];
  const resolve: Resolve = (hostname) => {
    asked.push(hostname);
    return Promise.resolve(addresses.map((address) => ({ address, family: isIP(address) })));
  };
  return Object.assign(resolve, { asked });
};

/** The error, or null when a connection was made. */
function connect(
  hostname: string,
  policy: EgressPolicy,
  resolve: Resolve,
  { to = port, onOpening }: { to?: number; onOpening?: (socket: Socket) => void } = {},
): Promise<Error | null> {
  // As undici calls it: brackets in `host`, none in `hostname`.
  const host = `${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${to}`;
  const guarded = createGuardedConnect({
    policy,
    connectTimeoutMs: 5_000,
    hosts: { resolve, forget: (name) => forgotten.push(name) },
    proxy: null,
    onRefused: (reason) => refused.push(reason),
    sessions: createTlsSessions({ maxBytes: 100_000, onHandshake: () => undefined }),
  });
  return new Promise((done) => {
    const target = { hostname, host, protocol: 'http:', port: String(to) };
    const onOpen: Callback = (...[error, socket]) => {
      if (socket) sockets.push(socket);
      done(error);
    };
    guarded(target, onOpen, onOpening);
  });
}

describe('a connection [security]', () => {
  test.each(REFUSED)(
    'to the literal %s is refused before a look-up or a socket',
    async (address) => {
      const resolve = answering('127.0.0.1');
      expect(await connect(address, strict, resolve)).toBeInstanceOf(EgressBlockedError);
      expect([resolve.asked, spy.opened()]).toEqual([[], 0]);
    },
  );

  test.each(REFUSED)(
    'to a name that resolves to %s is refused before a socket',
    async (address) => {
      const error = await connect('hook.example.com', strict, answering(address));
      expect(error).toMatchObject({ code: 'EGRESS_BLOCKED' });
      expect(spy.opened()).toBe(0);
    },
  );

  test.each([
    ['first', ['10.0.0.1', '8.8.8.8']],
    ['last', ['8.8.8.8', '2606:4700::1111', '169.254.169.254']],
  ])(
    'to a name is refused when one of its addresses is private: the %s',
    async (_where, answers) => {
      const error = await connect('hook.example.com', strict, answering(...answers));
      expect(error).toBeInstanceOf(EgressBlockedError);
      expect(spy.opened()).toBe(0);
    },
  );

  test.each([
    ...['2130706433', '0x7f.1', '017700000001', '127.1', '0x7f000001', '127.0.0.1.', '①②⑦.0.0.1'],
    ...['0177.0.0.1', '%31%32%37.0.0.1', '0', '2852039166', '0xa9fea9fe', '127。0。0。1'],
  ])('to a refused address written as %s is refused before a look-up', async (spelled) => {
    for (const hostname of [spelled, new URL(`http://${spelled}/`).hostname]) {
      const resolve = answering('8.8.8.8');
      expect(await connect(hostname, strict, resolve)).toBeInstanceOf(EgressBlockedError);
      expect([resolve.asked, spy.opened()]).toEqual([[], 0]);
    }
  });

  test('a connection to a name without an address is refused', async () => {
    const error = await connect('hook.example.com', loopback, answering());
    expect(error).toBeInstanceOf(EgressBlockedError);
  });

  test.each(['kafka', 'localhost', 'db.internal', 'x.svc.cluster.local.'])(
    'to the internal name %s is refused before a look-up',
    async (name) => {
      const resolve = answering('8.8.8.8');
      expect(await connect(name, strict, resolve)).toBeInstanceOf(EgressBlockedError);
      expect([resolve.asked, spy.opened()]).toEqual([[], 0]);
    },
  );

  test('is refused without revealing the address of the name', async () => {
    const error = await connect('hook.example.com', strict, answering('10.9.8.7'));
    expect(error?.message).toBe('blocked address');
    expect(JSON.stringify(error)).not.toContain('10.9.8.7');
  });

  test('a connection to loopback is made when the policy allows it, as a literal and by name', async () => {
    expect(await connect('127.0.0.1', loopback, answering())).toBeNull();
    expect(await connect('hook.example.com', loopback, answering('127.0.0.1'))).toBeNull();
    expect(spy.opened()).toBe(2);
  });

  test('a connection to a port of infrastructure, or over plain http that the policy does not allow, is refused', async () => {
    const onPort = connect('127.0.0.1', loopback, answering(), { to: 6_379 });
    expect(await onPort).toBeInstanceOf(EgressBlockedError);
    const secure = { ...loopback, allowHttp: false };
    expect(await connect('127.0.0.1', secure, answering())).toBeInstanceOf(EgressBlockedError);
    expect(spy.opened()).toBe(0);
  });

  test('a connection to loopback is not allowed by a range of addresses', async () => {
    const policy = { ...strict, allowCidrs: cidrs('127.0.0.0/8') };
    expect(await connect('127.0.0.1', policy, answering())).toBeInstanceOf(EgressBlockedError);
    expect(spy.opened()).toBe(0);
  });

  test('looks a name up once, so that no second answer can replace the checked one', async () => {
    const resolve = answering('127.0.0.1');
    await connect('hook.example.com', loopback, resolve);
    expect(resolve.asked).toEqual(['hook.example.com']);
  });

  test('checks a cached answer each time it is used', async () => {
    const answers = [['127.0.0.1'], ['8.8.8.8', '127.0.0.1']];
    const hosts = createHostResolver({
      maxBytes: 100_000,
      readNames: () =>
        Promise.resolve({
          hostsFile: new Map([['hook.example.com', answers[0] ?? []]]),
          resolve4: () => Promise.resolve([]),
          resolve6: () => Promise.resolve([]),
        }),
    });
    expect(await connect('hook.example.com', loopback, hosts.resolve)).toBeNull();
    const error = await connect('hook.example.com', strict, hosts.resolve);
    expect(error).toBeInstanceOf(EgressBlockedError);
    expect(spy.opened()).toBe(1);
  });

  test('checks the addresses of a family whose answer came late', async () => {
    const late = Promise.withResolvers<AddressRecord[]>();
    const hosts = createHostResolver({
      maxBytes: 100_000,
      readNames: () =>
        Promise.resolve({
          hostsFile: new Map(),
          resolve4: () => Promise.resolve([{ address: '127.0.0.1', ttl: 60 }]),
          resolve6: () => late.promise,
        }),
      monotonicMs: () => 1,
      waitForOther: () => Promise.resolve(),
    });
    expect(await connect('hook.example.com', loopback, hosts.resolve)).toBeNull();
    late.resolve([{ address: 'fd00:ec2::254', ttl: 60 }]);
    await eventually('both', async () => (await hosts.resolve('hook.example.com')).length === 2);
    const error = await connect('hook.example.com', loopback, hosts.resolve);
    expect(error).toBeInstanceOf(EgressBlockedError);
    expect(spy.opened()).toBe(1);
  });

  test('goes to the checked address, whatever a second look-up would return', async () => {
    const answers = ['127.0.0.1', '10.0.0.1'];
    const rebinding: Resolve = () =>
      Promise.resolve([{ address: answers.shift() ?? '', family: 4 }]);
    expect(await connect('hook.example.com', loopback, rebinding)).toBeNull();
    expect(sockets[0]?.remoteAddress).toBe('127.0.0.1');
    expect(answers).toEqual(['10.0.0.1']);
    const second = await connect('hook.example.com', loopback, rebinding);
    expect([second, spy.opened()]).toEqual([expect.any(EgressBlockedError), 1]);
  });

  test('that cannot be made drops the cached addresses of its host', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port: to } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const error = await connect('hook.example.com', loopback, answering('127.0.0.1'), { to });
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(forgotten).toEqual(['hook.example.com']);
  });

  const ended = new Error('ended');

  test('that is ended before its host was found leaves the look-up under way', async () => {
    const error = await connect('hook.example.com', loopback, () => new Promise(() => undefined), {
      onOpening: (socket) => socket.destroy(ended),
    });
    expect([error?.cause, forgotten]).toEqual([ended, []]);
  });

  test('that is ended while its host does not answer drops the cached addresses', async () => {
    const error = await connect('hook.example.com', loopback, answering('127.0.0.1'), {
      onOpening: (socket) => socket.once('lookup', () => socket.destroy(ended)),
    });
    expect([error, forgotten]).toEqual([ended, ['hook.example.com']]);
  });

  test('fails with the error of the look-up', async () => {
    const failure = new LookupFailedError(null);
    expect(await connect('hook.example.com', strict, () => Promise.reject(failure))).toBe(failure);
    expect([refused, forgotten, spy.opened()]).toEqual([[], [], 0]);
  });
});
