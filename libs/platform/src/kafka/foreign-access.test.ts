import { describe, expect, it } from '@jest/globals';
import { foreignClusters } from '@posthorn/domain/ingest.ts';
import { foreignAccessOf } from './foreign-access.ts';

const LOGIN = { mechanism: 'scram-sha-512', username: 'orders', password: 'hush' } as const;
const clusters = foreignClusters.parse(
  JSON.stringify([
    { brokers: ['kafka-2:9093', 'kafka-1:9093'], ...LOGIN },
    { brokers: ['inside:9092'], tls: false },
  ]),
);

describe('a cluster of other programs', () => {
  it('has the login that is its own, whatever the order of its brokers', () => {
    expect(foreignAccessOf(clusters, 'kafka-1:9093,kafka-2:9093')).toEqual({
      brokers: ['kafka-1:9093', 'kafka-2:9093'],
      tls: expect.any(Object),
      sasl: LOGIN,
    });
  });

  it('is reached without TLS only where that is said', () => {
    expect(foreignAccessOf(clusters, 'inside:9092')).toMatchObject({ tls: null, sasl: null });
  });

  it.each([[undefined], [clusters]])('gets no login when nothing is said about it', (known) => {
    expect(foreignAccessOf(known, 'other:9093')).toEqual({
      brokers: ['other:9093'],
      tls: expect.any(Object),
      sasl: null,
    });
  });

  it('names a file that cannot be read', () => {
    const brokers = ['kafka:9093'];
    const [cluster] = foreignClusters.parse(JSON.stringify([{ brokers, caFile: '/none/ca.pem' }]));
    expect(() => foreignAccessOf(cluster && [cluster], 'kafka:9093')).toThrow(
      /The TLS files of Kafka at kafka:9093 cannot be used: .*\/none\/ca\.pem/,
    );
  });
});
