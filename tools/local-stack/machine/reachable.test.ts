import { describe, expect, test } from '@jest/globals';
import { parseBrokers, parseUrl, requireReachable } from './reachable.ts';

describe('a given address', () => {
  test('is read from a list of brokers', () => {
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
  ])('is read from %s', (url, ports) => {
    expect(parseUrl(url, 27_017).map(({ port }) => port)).toEqual(ports);
  });

  test('that nobody answers at is told by variable and address, never with its password', async () => {
    const given = {
      redisUrl: 'redis://:secret@127.0.0.1:1',
      mongodbUrl: 'mongodb://u:pw@127.0.0.1:1/x',
    };
    const failure = await requireReachable(given).catch((error: unknown) => String(error));
    expect(failure).toContain('REDIS_URL names 127.0.0.1:1, where nothing answers.');
    expect(failure).toContain('MONGODB_URL names 127.0.0.1:1, where nothing answers.');
    expect(failure).not.toMatch(/secret|pw/);
  });
});
