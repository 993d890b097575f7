import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import {
  type AddressRecord,
  createHostResolver,
  type HostResolver,
  LookupFailedError,
  parseHosts,
  readSystemNames,
} from './resolve-host.ts';

describe('resolve host', () => {
  const NAME = 'hook.example.com';
  const MAX_BYTES = 100_000;
  const NO_DATA = Object.assign(new Error('no such record'), { code: 'ENODATA' });

  let nowMs = 1;
  let asked: string[] = [];
  let systemReads = 0;
  let hostsFile = new Map<string, string[]>();
  let v4: () => Promise<AddressRecord[]>;
  let v6: () => Promise<AddressRecord[]>;
  let hosts: HostResolver;
  /** Ends the time that the family which has not answered yet gets. */
  let waitIsOver: () => void;

  beforeEach(() => {
    const waiting = new Promise<void>((resolve) => (waitIsOver = resolve));
    [asked, systemReads, hostsFile] = [[], 0, new Map<string, string[]>()];
    v4 = () => Promise.resolve([{ address: '8.8.8.8', ttl: 30 }]);
    v6 = () => Promise.reject(NO_DATA);
    hosts = createHostResolver({
      maxBytes: MAX_BYTES,
      readNames: () => {
        systemReads += 1;
        return Promise.resolve({
          hostsFile,
          resolve4: (hostname: string) => {
            asked.push(hostname);
            return v4();
          },
          resolve6: () => v6(),
        });
      },
      monotonicMs: () => nowMs,
      waitForOther: () => waiting,
    });
  });

  const addressesOf = async (name = NAME): Promise<string[]> =>
    (await hosts.resolve(name)).map(({ address }) => address);

  describe('the addresses of a host [security]', () => {
    test('include those of both families', async () => {
      v6 = () => Promise.resolve([{ address: '2606:4700::1111', ttl: 30 }]);
      expect(await hosts.resolve(NAME)).toEqual([
        { address: '8.8.8.8', family: 4 },
        { address: '2606:4700::1111', family: 6 },
      ]);
    });

    test('are 32 at most', async () => {
      const many = Array.from({ length: 4_000 }, (_, n) => `8.8.${n >> 8}.${n & 255}`);
      v4 = () => Promise.resolve(many.map((address) => ({ address, ttl: 30 })));
      expect(await addressesOf()).toEqual(many.slice(0, 32));
      hostsFile.set('many.example.com', many);
      expect(await addressesOf('many.example.com')).toHaveLength(32);
    });

    test('may be of IPv6 only', async () => {
      v4 = () => Promise.reject(NO_DATA);
      v6 = () => Promise.resolve([{ address: '2606:4700::1111', ttl: 30 }]);
      expect(await addressesOf()).toEqual(['2606:4700::1111']);
    });

    test('are looked up once for all that ask at the same time', async () => {
      await Promise.all(Array.from({ length: 200 }, () => hosts.resolve(NAME)));
      expect(asked).toEqual([NAME]);
    });

    test('come from the hosts file without asking the name servers', async () => {
      hostsFile.set('localhost', ['127.0.0.1', '::1']);
      expect(await addressesOf('localhost')).toEqual(['127.0.0.1', '::1']);
      expect(await addressesOf('localhost.')).toEqual(['127.0.0.1', '::1']);
      expect(asked).toEqual([]);
    });

    test('follow changes of the system files after 5 s at most', async () => {
      await hosts.resolve('a.example.com');
      await hosts.resolve('b.example.com');
      expect(systemReads).toBe(1);
      nowMs += 5_001;
      hostsFile.set('c.example.com', ['9.9.9.9']);
      expect(await addressesOf('c.example.com')).toEqual(['9.9.9.9']);
      expect(systemReads).toBe(2);
    });
  });

  describe('a name server that does not answer for one family [security]', () => {
    const V4 = { address: '8.8.8.8', ttl: 30 };
    const V6 = { address: '2606:4700::1111', ttl: 30 };
    let late: PromiseWithResolvers<AddressRecord[]>;
    beforeEach(() => {
      late = Promise.withResolvers();
    });

    test.each([
      ['IPv6', () => ([v4, v6] = [() => Promise.resolve([V4]), () => late.promise]), [V4.address]],
      ['IPv4', () => ([v4, v6] = [() => late.promise, () => Promise.resolve([V6])]), [V6.address]],
    ])('delays the addresses of the other by a short time only: %s', async (_what, set, known) => {
      set();
      waitIsOver();
      expect(await addressesOf()).toEqual(known);
    });

    test('is waited for during this time', async () => {
      v6 = () => late.promise;
      const asking = addressesOf();
      late.resolve([V6]);
      expect(await asking).toEqual([V4.address, V6.address]);
    });

    test('is waited for as long as the other has no address', async () => {
      [v4, v6] = [() => Promise.reject(NO_DATA), () => late.promise];
      waitIsOver();
      const asking = addressesOf();
      late.resolve([V6]);
      expect(await asking).toEqual([V6.address]);
    });

    test('adds its addresses when it answers after all, without another look-up', async () => {
      v6 = () => late.promise;
      waitIsOver();
      await addressesOf();
      late.resolve([V6]);
      await late.promise;
      await eventually('both', async () => (await addressesOf()).length === 2);
      expect(await addressesOf()).toEqual([V4.address, V6.address]);
      expect(asked).toEqual([NAME]);
    });

    test('adds none whose TTL is shorter than that of the answer in the cache', async () => {
      v6 = () => late.promise;
      waitIsOver();
      await addressesOf();
      late.resolve([{ ...V6, ttl: 10 }]);
      await late.promise;
      await new Promise(setImmediate);
      expect(await addressesOf()).toEqual([V4.address]);
    });

    test('changes nothing when it fails in the end', async () => {
      v6 = () => late.promise;
      waitIsOver();
      await addressesOf();
      late.reject(NO_DATA);
      await new Promise(setImmediate);
      expect(await addressesOf()).toEqual([V4.address]);
    });
  });

  describe('the answer of a name server [security]', () => {
    test.each([
      ['for its TTL', [30], 30_000],
      ['for 5 s when its TTL is shorter', [0], 5_000],
      ['for 300 s when its TTL is longer', [86_400], 300_000],
      ['for the shortest of its TTLs', [50, 20], 20_000],
    ])('is cached %s, and no longer', async (_what, ttls, cachedMs) => {
      v4 = () => Promise.resolve(ttls.map((ttl) => ({ address: '8.8.8.8', ttl })));
      await hosts.resolve(NAME);
      nowMs += cachedMs - 1;
      await hosts.resolve(NAME);
      expect(asked).toHaveLength(1);
      nowMs += 2;
      v4 = () => Promise.resolve([{ address: '9.9.9.9', ttl: 30 }]);
      expect(await addressesOf()).toEqual(['9.9.9.9']);
    });

    test('is not used after its TTL, even when the next look-up fails', async () => {
      await hosts.resolve(NAME);
      nowMs += 30_001;
      v4 = () => Promise.reject(NO_DATA);
      await expect(hosts.resolve(NAME)).rejects.toThrow(LookupFailedError);
    });

    test('is dropped when the host could not be reached', async () => {
      await hosts.resolve(NAME);
      hosts.forget(NAME);
      v4 = () => Promise.resolve([{ address: '9.9.9.9', ttl: 30 }]);
      expect(await addressesOf()).toEqual(['9.9.9.9']);
    });

    test('is dropped when those used since fill the memory, and counted as hit or miss', async () => {
      await hosts.resolve(NAME);
      for (let n = 0; n < 1_000; n += 1) await hosts.resolve(`h${n}.example.com`);
      expect(hosts.usedBytes()).toBeGreaterThan(MAX_BYTES / 2);
      expect(hosts.usedBytes()).toBeLessThanOrEqual(MAX_BYTES);
      await hosts.resolve('h999.example.com');
      await hosts.resolve(NAME);
      expect(asked).toHaveLength(1_002);
      expect(hosts.counts()).toEqual({ hit: 1, miss: 1_002 });
    });

    test('fills the memory sooner when it has many addresses, or a family that is late', async () => {
      const bytesOf = async (name: string): Promise<number> => {
        const before = hosts.usedBytes();
        await hosts.resolve(name);
        return hosts.usedBytes() - before;
      };
      const one = await bytesOf('one.example.com');
      v4 = () =>
        Promise.resolve(Array.from({ length: 32 }, () => ({ address: '8.8.8.8', ttl: 30 })));
      const many = await bytesOf('many.example.com');
      v4 = () => Promise.resolve([{ address: '8.8.8.8', ttl: 30 }]);
      v6 = () => new Promise(() => undefined);
      waitIsOver();
      const late = await bytesOf('late.example.com');
      expect([many > 5 * one, late]).toEqual([true, many]);
    });
  });

  describe('a failed look-up [security]', () => {
    test.each([
      ['no record', () => Promise.reject(NO_DATA)],
      ['an empty answer', () => Promise.resolve([])],
      [
        'no name server',
        () => Promise.reject(Object.assign(new Error(), { code: 'ECONNREFUSED' })),
      ],
    ])('rejects with LookupFailedError: %s', async (_what, answer) => {
      v4 = answer;
      await expect(hosts.resolve(NAME)).rejects.toMatchObject({ code: 'LOOKUP_FAILED' });
    });

    test('is cached for 2 s, and no longer', async () => {
      v4 = () => Promise.reject(NO_DATA);
      await expect(hosts.resolve(NAME)).rejects.toThrow(LookupFailedError);
      nowMs += 1_999;
      await expect(hosts.resolve(NAME)).rejects.toThrow(LookupFailedError);
      expect(asked).toHaveLength(1);
      nowMs += 2;
      v4 = () => Promise.resolve([{ address: '8.8.8.8', ttl: 30 }]);
      expect(await addressesOf()).toEqual(['8.8.8.8']);
    });
  });
});

describe('the hosts file', () => {
  test('gives every name of a line its address, in lower case', () => {
    const byName = parseHosts(
      '127.0.0.1\tlocalhost Hook.Example.com\n::1 localhost ip6-localhost\n',
    );
    expect([...byName]).toEqual([
      ['localhost', ['127.0.0.1', '::1']],
      ['hook.example.com', ['127.0.0.1']],
      ['ip6-localhost', ['::1']],
    ]);
  });

  test.each([
    ['a comment', '# 10.0.0.1 hook.example.com\n10.0.0.1 # hook.example.com'],
    [
      'a line that does not begin with an address',
      'hook.example.com 10.0.0.1\n300.1.1.1 hook.example.com',
    ],
    ['a link-local address with its zone', 'fe80::1%lo0 hook.example.com'],
    ['an empty line', '\n \r\n'],
  ])('has no address for a name in %s', (_what, text) => {
    expect(parseHosts(text).has('hook.example.com')).toBe(false);
  });

  test('may be missing', async () => {
    const names = await readSystemNames('/nonexistent/hosts');
    expect(names.hostsFile.size).toBe(0);
  });
});
