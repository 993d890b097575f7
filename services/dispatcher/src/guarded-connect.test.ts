import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { cidrs } from '@posthorn/domain/ip-address.ts';
import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import { createHook } from 'node:async_hooks';
import { createServer, isIP, type AddressInfo, type Server, type Socket } from 'node:net';
import { createGuardedConnect, EgressBlockedError, type Resolve } from './guarded-connect.ts';

const strict: EgressPolicy = { allowLoopback: false, allowHttp: true, allowCidrs: [] };
const loopback: EgressPolicy = { ...strict, allowLoopback: true };

/** One address of every refused range, and both ends of the widest. */
const REFUSED = `
  0.0.0.0 10.0.0.1 10.255.255.255 100.64.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1
  172.31.255.255 192.0.0.1 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1
  198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16
  :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b:1::1 100::1 fc00::1
  fd00:ec2::254 fe80::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 2620:4f:8000::1 5f00::1
`.match(/\S+/g) as string[];

/** Node announces every connect request to the kernel under this name, before a packet leaves. */
let opened = 0;
const spy = createHook({
  init(_id, type) {
    if (type === 'TCPCONNECTWRAP') opened += 1;
  },
});
const sockets: Socket[] = [];
let server: Server;
let port = 0;

beforeAll(async () => {
  server = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
  spy.enable();
});
beforeEach(() => {
  opened = 0;
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => {
  spy.disable();
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
  to = port,
): Promise<Error | null> {
  // As undici calls it: brackets in `host`, none in `hostname`.
  const host = `${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${to}`;
  const guarded = createGuardedConnect({ policy, connectTimeoutMs: 5_000, resolve });
  return new Promise((done) => {
    guarded({ hostname, host, protocol: 'http:', port: String(to) }, (...[error, socket]) => {
      if (socket) sockets.push(socket);
      done(error);
    });
  });
}

describe('a connection', () => {
  test.each(REFUSED)(
    'to the literal %s is refused before a look-up or a socket',
    async (address) => {
      const resolve = answering('127.0.0.1');
      expect(await connect(address, strict, resolve)).toBeInstanceOf(EgressBlockedError);
      expect([resolve.asked, opened]).toEqual([[], 0]);
    },
  );

  test.each(REFUSED)(
    'to a name that resolves to %s is refused before a socket',
    async (address) => {
      const error = await connect('hook.example.com', strict, answering(address));
      expect(error).toMatchObject({ code: 'EGRESS_BLOCKED' });
      expect(opened).toBe(0);
    },
  );

  test.each([
    ['first', ['10.0.0.1', '8.8.8.8']],
    ['last', ['8.8.8.8', '2606:4700::1111', '169.254.169.254']],
  ])(
    'to a name with a private answer that comes %s is refused as a whole',
    async (_where, answers) => {
      const error = await connect('hook.example.com', strict, answering(...answers));
      expect(error).toBeInstanceOf(EgressBlockedError);
      expect(opened).toBe(0);
    },
  );

  test('to a name without an address is refused', async () => {
    const error = await connect('hook.example.com', loopback, answering());
    expect(error).toBeInstanceOf(EgressBlockedError);
  });

  test.each(['kafka', 'localhost', 'db.internal', 'x.svc.cluster.local.'])(
    'to the internal name %s is refused before a look-up',
    async (name) => {
      const resolve = answering('8.8.8.8');
      expect(await connect(name, strict, resolve)).toBeInstanceOf(EgressBlockedError);
      expect([resolve.asked, opened]).toEqual([[], 0]);
    },
  );

  test('is refused without telling where the name leads', async () => {
    const error = await connect('hook.example.com', strict, answering('10.9.8.7'));
    expect(error?.message).toBe('blocked address');
    expect(JSON.stringify(error)).not.toContain('10.9.8.7');
  });

  test('to loopback is made under its switch, as literal and by name', async () => {
    expect(await connect('127.0.0.1', loopback, answering())).toBeNull();
    expect(await connect('hook.example.com', loopback, answering('127.0.0.1'))).toBeNull();
    expect(opened).toBe(2);
  });

  test('to a port of infrastructure, or over plain http without its switch, is refused', async () => {
    const onPort = connect('127.0.0.1', loopback, answering(), 6_379);
    expect(await onPort).toBeInstanceOf(EgressBlockedError);
    const secure = { ...loopback, allowHttp: false };
    expect(await connect('127.0.0.1', secure, answering())).toBeInstanceOf(EgressBlockedError);
    expect(opened).toBe(0);
  });

  test('to loopback is not opened by a range', async () => {
    const policy = { ...strict, allowCidrs: cidrs('127.0.0.0/8') };
    expect(await connect('127.0.0.1', policy, answering())).toBeInstanceOf(EgressBlockedError);
    expect(opened).toBe(0);
  });

  test('asks once for a name, so that a second answer cannot slip in', async () => {
    const resolve = answering('127.0.0.1');
    await connect('hook.example.com', loopback, resolve);
    expect(resolve.asked).toEqual(['hook.example.com']);
  });

  test('fails with the error of the look-up', async () => {
    const notFound = Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
    const error = await connect('hook.example.com', strict, () => Promise.reject(notFound));
    expect(error).toMatchObject({ code: 'ENOTFOUND' });
  });
});
