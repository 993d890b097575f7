import { describe, expect, test } from '@jest/globals';
import { memoryFigures, metricBy, metricIn, metricValues } from './watch-memory.ts';

function sample(residentMiB: number | null) {
  const heap = { heapUsedMiB: null, heapTotalMiB: null, externalMiB: null };
  return { second: 0, residentMiB, ...heap, timers: 3, usedMiB: {} };
}

describe('the memory of a service', () => {
  test('is given before, after, and at its highest', () => {
    const figures = memoryFigures([sample(90), sample(120), sample(100)]);
    expect(figures.residentMiB).toEqual({ before: 90, highest: 120, after: 100 });
    expect(figures.timers).toEqual({ before: 3, highest: 3, after: 3 });
  });

  test('is null where nothing could be read', () => {
    const nothing = { before: null, highest: null, after: null };
    expect(memoryFigures([sample(1)]).heapUsedMiB).toEqual(nothing);
    expect(memoryFigures([]).residentMiB).toEqual(nothing);
  });

  test('skips failed samples for the highest value', () => {
    const { residentMiB } = memoryFigures([sample(90), sample(null), sample(95)]);
    expect(residentMiB.highest).toBe(95);
  });
});

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

test('returns the value of each set of labels, and none of another metric whose name begins alike', () => {
  expect(metricValues(TEXT, 'nodejs_active_resources')).toEqual([12, 30]);
  expect(metricValues(TEXT, 'nodejs_active')).toEqual([]);
});
