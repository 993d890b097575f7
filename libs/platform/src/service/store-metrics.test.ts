import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createStoreMetrics } from './store-metrics.ts';

test('Operations of all stores are in two metrics, the errors from 0 on', async () => {
  const registry = new Registry();
  const mongo = createStoreMetrics(registry, 'mongodb');
  const kafka = createStoreMetrics(registry, 'kafka');
  mongo.succeeded('insert', 4);
  kafka.failed('produce', 70);
  const text = await registry.metrics();
  expect(text).toContain('posthorn_store_errors_total{store="mongodb",operation="find"} 0');
  expect(text).toContain('posthorn_store_errors_total{store="kafka",operation="produce"} 1');
  const seconds = 'posthorn_store_operation_duration_seconds';
  expect(text).toContain(`${seconds}_bucket{le="0.005",store="mongodb",operation="insert"} 1`);
  expect(text).toContain(`${seconds}_count{store="kafka",operation="produce"} 1`);
});
