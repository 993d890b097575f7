import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { metricsOfServices } from '../../docs/metrics-of-services.ts';
import { metricsText } from '../../docs/write-metrics.ts';

describe('docs/metrics.md', () => {
  const written = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');

  it('is up to date with the code (node docs/write-metrics.ts)', () => {
    expect(written).toBe(metricsText());
  });

  it('warns of the committed lag', () => {
    const row = written
      .split('\n')
      .find((line) => line.startsWith('| `posthorn_kafka_consumer_lag'));
    expect(row).toContain('Never alert or scale on it');
  });
});

/** Prometheus sees no increase in a series that comes with its first increment. */
describe('counters that matter', () => {
  it.each([
    ['retry', 'posthorn_dead_letter_records_total', 'reason', 'schedule_exhausted'],
    ['retry', 'posthorn_deliveries_finished_total', 'result', 'exhausted'],
    ['dispatcher', 'posthorn_deliveries_finished_total', 'result', 'delivered'],
    ['dispatcher', 'posthorn_delivery_attempts_total', 'outcome', 'timeout'],
    ['dispatcher', 'posthorn_egress_blocked_total', 'reason', 'address'],
    ['dispatcher', 'posthorn_store_errors_total', 'operation', 'insert'],
    ['gateway', 'posthorn_audit_events_total', 'outcome', 'failed'],
    ['gateway', 'posthorn_idempotency_lookups_total', 'result', 'repeated'],
  ] as const)('of %s are 0 from the start: %s{%s="%s"}', async (service, name, label, value) => {
    const metric = await metricsOfServices()[service].getSingleMetric(name)?.get();
    const found = metric?.values.filter(({ labels }) => labels[label] === value);
    expect(found?.map((sample) => sample.value)).toContain(0);
  });
});
