import { describe, expect, test } from '@jest/globals';
import { parseBrokers, parseUrl, requireReachable } from './backing-services.ts';

describe('given addresses', () => {
  test('are parsed from a list of brokers', () => {
    expect(parseBrokers('a:1, b')).toEqual([
      { host: 'a', port: 1 },
      { host: 'b', port: 9092 },
    ]);
  });

  test.each([
    ['mongodb://a:1,b/posthorn?replicaSet=rs0', [1, 27017]],
    ['mongodb://user:p%40ss@a:2/x', [2]],
    ['redis://:secret@[::1]:3', [3]],
    ['nonsense', []],
  ])('are parsed from %s', (url, ports) => {
    expect(parseUrl(url, 27_017).map(({ port }) => port)).toEqual(ports);
  });

  test('that cannot be reached are reported with variable and address, but without password', async () => {
    const given = {
      redisUrl: 'redis://:secret@127.0.0.1:1',
      mongodbUrl: 'mongodb://u:pw@127.0.0.1:1/x',
    };
    const failure = await requireReachable(given).catch((error: unknown) => String(error));
    expect(failure).toContain('Cannot connect to 127.0.0.1:1 (REDIS_URL).');
    expect(failure).toContain('Cannot connect to 127.0.0.1:1 (MONGODB_URL).');
    expect(failure).not.toMatch(/secret|pw/);
  });

  test('with a password that is not percent-encoded are reported without a part of it', async () => {
    const given = {
      redisUrl: 'redis://:secret/word@127.0.0.1:1',
      mongodbUrl: 'mongodb://user:secret/word@127.0.0.1:1/x',
    };
    const failure = await requireReachable(given).catch((error: unknown) => String(error));
    expect(failure).toMatch(/MONGODB_URL must be[^]*REDIS_URL must be/);
    expect(failure).not.toMatch(/secret|word@|user:/);
  });
});
