import { expect, test } from '@jest/globals';
import { metricBy, metricIn } from './read-metrics.ts';

const TEXT = `# TYPE nodejs_active_resources gauge
nodejs_active_resources{type="Timeout"} 12
nodejs_active_resources{type="TCPSocketWrap"} 30
nodejs_active_resources_total 42
posthorn_memory_used_bytes{part="records"} 1024
posthorn_memory_used_bytes{part="payload_cache"} 0
`;

test('finds a metric by its name and label', () => {
  expect(metricIn(TEXT, 'nodejs_active_resources', 'type="Timeout"')).toBe(12);
  expect(metricIn(TEXT, 'nodejs_active_resources_total')).toBe(42);
});

test('sums the samples of a metric', () => {
  expect(metricIn(TEXT, 'nodejs_active_resources')).toBe(42);
});

test('returns null for a metric that does not exist', () => {
  expect(metricIn(TEXT, 'nodejs_active_resources', 'type="Immediate"')).toBeNull();
});

test('returns the values of a metric by label', () => {
  const used = { records: 1_024, payload_cache: 0 };
  expect(metricBy(TEXT, 'posthorn_memory_used_bytes', 'part')).toEqual(used);
  expect(metricBy(TEXT, 'posthorn_memory_budget_bytes', 'part')).toEqual({});
  expect(metricBy(TEXT, 'posthorn_memory_used_bytes', 'type')).toEqual({});
});
