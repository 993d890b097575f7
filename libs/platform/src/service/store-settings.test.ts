import { describe, expect, test } from '@jest/globals';
import { assertNoPlaintextStores, hostsOf, mongodbUrl, redisUrl } from './store-settings.ts';

describe('a URL of MongoDB', () => {
  test.each([
    ['mongodb://db/posthorn', 'db'],
    ['mongodb://db:27017', 'db:27017'],
    ['mongodb://a:1,b:2,[::1]:3/posthorn?replicaSet=rs0&tls=true', 'a:1,b:2,[::1]:3'],
    ['mongodb://user@db/posthorn', 'db'],
    ['mongodb://user:p%40s%2Fs@db/?authSource=admin', 'db'],
    [
      'mongodb+srv://user:pass@cluster0.example.net/posthorn?retryWrites=true',
      'cluster0.example.net',
    ],
    ['mongodb://%2Ftmp%2Fmongodb-27017.sock/posthorn', '%2Ftmp%2Fmongodb-27017.sock'],
  ])('may be %s', (url, hosts) => {
    expect(mongodbUrl.safeParse(url).success).toBe(true);
    expect(hostsOf(url)).toBe(hosts);
  });

  test.each([
    ...['/', '@', ':', '?', '#', '[', ']', '%', ' ', '1/', '1?', '1/?x=', '1@b/'].map(
      (sign) => `mongodb://alice:hush${sign}two@db/posthorn`,
    ),
    ...['mongodb://alice:12/34hush@db/posthorn', 'mongodb://alice:12?34hush@db/posthorn'],
    ...[
      'mongodb+srv://alice:hush/two@db.example.net/posthorn',
      'mongodb://al/ice:hush@db/posthorn',
    ],
    ...[
      'mongodb://alice:hush',
      'mongodb://db:hush/posthorn',
      'mongodb://',
      'hush',
      'mongodb:///hush',
    ],
    'mongodb://u:p@db/posthorn?appName=a@hush',
  ])('may not be %s, and nothing of it is shown', (url) => {
    const { error } = mongodbUrl.safeParse(url);
    expect(error?.issues).toHaveLength(1);
    expect(error?.message).not.toMatch(/hush|alice|two@/);
    expect(hostsOf(url)).toBe('the address of MONGODB_URL');
  });
});

describe('a URL of Redis', () => {
  test.each([
    ...['redis://redis', 'rediss://redis:6380/2', 'redis://:pass@redis/', 'redis://u:p%25@redis:1'],
    ...[
      'redis://redis?db=2',
      'redis://:a@b@redis',
      'redis://:a:b@redis',
      'redis://:pass@[::1]:6379',
    ],
  ])('may be %s', (url) => {
    expect(redisUrl.safeParse(url).success).toBe(true);
  });

  test.each([
    ...['%', '%two', '/', '/two', '#', '?', ' '].map((sign) => `redis://:hush${sign}@redis:1`),
    ...['redis://u:12/34hush@redis', 'redis://u:12?34hush@redis', 'redis://u:12#34hush@redis'],
    ...['redis://', 'http://redis', 'hush', 'redis://redis/hush'],
  ])('may not be %s, and nothing of it is shown', (url) => {
    const { error } = redisUrl.safeParse(url);
    expect(error?.issues).toHaveLength(1);
    expect(error?.message).not.toContain('hush');
  });
});

const PLAIN = {
  KAFKA_BROKERS: ['kafka:9092'],
  KAFKA_SSL: false,
  MONGODB_URL: 'mongodb://user:hush@mongo/posthorn',
  REDIS_URL: 'redis://:hush@redis',
};
const SECURED = {
  KAFKA_BROKERS: ['kafka:9092'],
  KAFKA_SSL: true,
  MONGODB_URL: 'mongodb://mongo/posthorn?replicaSet=rs0&tls=true',
  REDIS_URL: 'rediss://redis',
};
const PLAIN_MONGODB = { ...SECURED, MONGODB_URL: PLAIN.MONGODB_URL };
const start =
  (config: object, NODE_ENV = 'production') =>
  (): void => {
    assertNoPlaintextStores(config, { NODE_ENV });
  };

describe('a start in production [security]', () => {
  test('is refused when stores are reached without TLS, and each is named without its password', () => {
    expect(start(PLAIN)).toThrow(/Kafka: [^]*MongoDB: [^]*Redis: [^]*ALLOW_PLAINTEXT_STORES=true/);
    expect(start(PLAIN)).not.toThrow(/hush/);
  });

  test.each([
    ['Kafka', { KAFKA_SSL: false }],
    ['MongoDB', { MONGODB_URL: 'mongodb://mongo/posthorn' }],
    ['MongoDB', { MONGODB_URL: 'mongodb+srv://mongo/posthorn?TLS=false' }],
    ['MongoDB', { MONGODB_URL: 'mongodb://mongo/posthorn?tls=true&tlsInsecure=true' }],
    ['Redis', { REDIS_URL: 'redis://redis' }],
  ])('is refused for %s alone', (name, changed) => {
    expect(start({ ...SECURED, ...changed })).toThrow(new RegExp(`TLS:\n  ${name}: [^\n]*\nSet`));
  });

  test.each([
    ['every store has TLS', SECURED],
    ['MongoDB has it by SRV', { ...SECURED, MONGODB_URL: 'mongodb+srv://mongo/posthorn' }],
    ['MongoDB has a certificate of ours', { ...PLAIN_MONGODB, MONGODB_TLS_CERT_FILE: 'a.pem' }],
    ['it is allowed', { ...PLAIN, ALLOW_PLAINTEXT_STORES: true }],
    ['the process has no store', {}],
  ])('goes on when %s', (_when, config) => {
    expect(start(config)).not.toThrow();
  });
});

test('elsewhere, stores may be reached without TLS [security]', () => {
  expect(start(PLAIN, 'development')).not.toThrow();
});
