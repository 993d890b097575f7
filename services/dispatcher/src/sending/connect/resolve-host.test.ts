import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AddressRecord } from './hosts-file.ts';
import { createHostResolver, LookupFailedError, type HostResolver } from './resolve-host.ts';

const NAME = 'hook.example.com';
const NO_DATA = Object.assign(new Error('no such record'), { code: 'ENODATA' });

let nowMs = 1;
let asked: string[] = [];
let systemReads = 0;
let hostsFile = new Map<string, string[]>();
let v4: () => Promise<AddressRecord[]>;
let v6: () => Promise<AddressRecord[]>;
let hosts: HostResolver;

beforeEach(() => {
  [asked, systemReads, hostsFile] = [[], 0, new Map<string, string[]>()];
  v4 = () => Promise.resolve([{ address: '8.8.8.8', ttl: 30 }]);
  v6 = () => Promise.reject(NO_DATA);
  hosts = createHostResolver(
    () => {
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
    () => nowMs,
  );
});

const addressesOf = async (name = NAME): Promise<string[]> =>
  (await hosts.resolve(name)).map(({ address }) => address);

describe('the addresses of a host', () => {
  test('include those of both families', async () => {
    v6 = () => Promise.resolve([{ address: '2606:4700::1111', ttl: 30 }]);
    expect(await hosts.resolve(NAME)).toEqual([
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700::1111', family: 6 },
    ]);
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

describe('the answer of a name server', () => {
  test.each([
    ['for its TTL', [30], 30_000],
    ['for 5 s when its TTL is shorter', [0], 5_000],
    ['for 60 s when its TTL is longer', [86_400], 60_000],
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

  test('is dropped after 10,000 others', async () => {
    await hosts.resolve(NAME);
    for (let n = 0; n < 10_000; n += 1) await hosts.resolve(`h${n}.example.com`);
    await hosts.resolve('h9999.example.com');
    await hosts.resolve(NAME);
    expect(asked).toHaveLength(10_002);
  });
});

describe('a failed look-up', () => {
  test.each([
    ['no record', () => Promise.reject(NO_DATA)],
    ['an empty answer', () => Promise.resolve([])],
    ['no name server', () => Promise.reject(Object.assign(new Error(), { code: 'ECONNREFUSED' }))],
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
