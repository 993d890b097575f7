import { expect, test } from '@jest/globals';
import { metricIn } from './read-metric.ts';

const TEXT = `# TYPE nodejs_active_resources gauge
nodejs_active_resources{type="Timeout",service="dispatcher"} 12
nodejs_active_resources{type="TCPSocketWrap",service="dispatcher"} 30
nodejs_active_resources_total{service="dispatcher"} 42
`;

test('a metric is found by its name and label', () => {
  expect(metricIn(TEXT, 'nodejs_active_resources', 'type="Timeout"')).toBe(12);
  expect(metricIn(TEXT, 'nodejs_active_resources', '')).toBe(42);
});

test('a metric that is not there is no number', () => {
  expect(metricIn(TEXT, 'nodejs_active_resources', 'type="Immediate"')).toBeNull();
});
