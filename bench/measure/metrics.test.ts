import { expect, test } from '@jest/globals';
import { metricBy, metricCounts, metricIn, metricValues } from './metrics.ts';
import { memoryFigures } from './watch-memory.ts';

const TEXT = `# TYPE nodejs_active_resources gauge
nodejs_active_resources{type="Timeout"} 12
nodejs_active_resources{type="TCPSocketWrap"} 30
nodejs_active_resources_total 42
posthorn_memory_used_bytes{part="records"} 1024
posthorn_memory_used_bytes{part="payload_cache"} 0
posthorn_lag_seconds_bucket{le="0.1"} 4
posthorn_lag_seconds_count 4
`;

test('the samples of a metric are found by its label, summed, listed, and null without one', () => {
  const name = 'nodejs_active_resources';
  expect(metricIn(TEXT, name, 'type="Timeout"')).toBe(12);
  expect(metricIn(TEXT, name)).toBe(42);
  expect(metricValues(TEXT, name)).toEqual([12, 30]);
  expect(metricIn(TEXT, 'nodejs_active_resources_total')).toBe(42);
  expect(metricIn(TEXT, name, 'type="Immediate"')).toBeNull();
  expect(metricValues(TEXT, 'nodejs_active')).toEqual([]);
});

test('the values of a metric are given by one of its labels', () => {
  const used = { records: 1_024, payload_cache: 0 };
  expect(metricBy(TEXT, 'posthorn_memory_used_bytes', 'part')).toEqual(used);
  expect(metricBy(TEXT, 'posthorn_memory_budget_bytes', 'part')).toEqual({});
  expect(metricBy(TEXT, 'posthorn_memory_used_bytes', 'type')).toEqual({});
});

test('the metrics of Posthorn are read by name and labels, without buckets', () => {
  expect(metricCounts(TEXT)).toEqual({
    'posthorn_memory_used_bytes{part="records"}': 1_024,
    'posthorn_memory_used_bytes{part="payload_cache"}': 0,
    posthorn_lag_seconds_count: 4,
  });
});

test('the memory of a service is given before, after, and at its highest', () => {
  const heap = { heapUsedMiB: null, heapTotalMiB: null, externalMiB: null, usedMiB: {} };
  const samples = [90, 120, null, 100].map((residentMiB) => {
    return { second: 0, residentMiB, timers: 3, ...heap };
  });
  const { residentMiB, timers, heapUsedMiB } = memoryFigures(samples);
  expect(residentMiB).toEqual({ before: 90, highest: 120, after: 100 });
  expect(timers).toEqual({ before: 3, highest: 3, after: 3 });
  expect(heapUsedMiB).toEqual({ before: null, highest: null, after: null });
});
