import { describe, expect, test } from '@jest/globals';
import { assertNoPlaintextStores } from './plaintext-stores.ts';

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

describe('a start in production', () => {
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

test('elsewhere, stores may be reached without TLS', () => {
  expect(start(PLAIN, 'development')).not.toThrow();
});
