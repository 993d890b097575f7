import { describe, expect, test } from '@jest/globals';
import type { DelayTopic } from '@posthorn/domain/records/topics.ts';
import { Gauge, Registry } from 'prom-client';
import { createRetryMetrics, showParked } from './metrics.ts';

const RETRY_5S: DelayTopic = { kind: 'retry', delayMs: 5_000 };
const DEFERRED_5S: DelayTopic = { kind: 'deferred', delayMs: 5_000 };
const TOPICS = new Map([
  ['p.retry.5s', RETRY_5S],
  ['p.deferred.5s', DEFERRED_5S],
]);

async function valuesOf(registry: Registry, name: string) {
  const metric = await registry.getSingleMetric(name)?.get();
  return metric?.values.map(({ labels, value }) => ({ ...labels, value }));
}

describe('the metrics of the delay topics', () => {
  test('show parked and deferred records separately', async () => {
    const registry = new Registry();
    const lag = new Gauge({
      name: 'posthorn_kafka_consumer_lag_records',
      help: 'lag',
      labelNames: ['topic'],
      registers: [registry],
    });
    lag.set({ topic: 'p.retry.5s' }, 3);
    lag.set({ topic: 'p.deferred.5s' }, 40);
    lag.set({ topic: 'p.delivery-failed' }, 500);
    showParked(registry, TOPICS, (topic) => (topic === 'p.deferred.5s' ? 7_000 : 0));
    expect(await valuesOf(registry, 'posthorn_retry_pending')).toEqual([
      { delay: '5s', kind: 'retry', value: 3 },
      { delay: '5s', kind: 'deferred', value: 40 },
    ]);
    expect(await valuesOf(registry, 'posthorn_retry_overdue_seconds')).toEqual([
      { delay: '5s', kind: 'retry', value: 0 },
      { delay: '5s', kind: 'deferred', value: 7 },
    ]);
  });

  test('observe the lateness of each kind separately', async () => {
    const registry = new Registry();
    const metrics = createRetryMetrics(registry, [5_000], () => 0);
    metrics.observeLateness(RETRY_5S, 40);
    metrics.observeLateness(DEFERRED_5S, 2_000);
    metrics.observeLateness(DEFERRED_5S, -1);
    const values = await valuesOf(registry, 'posthorn_retry_lateness_seconds');
    // Values without a bucket are the sum and then the count of a histogram.
    expect(values?.filter((labels) => !('le' in labels))).toEqual([
      { delay: '5s', kind: 'retry', value: 0.04 },
      { delay: '5s', kind: 'retry', value: 1 },
      { delay: '5s', kind: 'deferred', value: 2 },
      { delay: '5s', kind: 'deferred', value: 2 },
    ]);
  });
});
