import { describe, expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DASHBOARDS } from '../../deploy/grafana/source/dashboards.ts';
import { ALERT_FILES, readAlerts } from '../../deploy/prometheus/read-alerts.ts';
import { metricsOfServices } from '../../docs/metrics-of-services.ts';
import { configurationText } from '../../docs/write-configuration.ts';
import { metricsText } from '../../docs/write-metrics.ts';

const ROOT = join(import.meta.dirname, '../..');
const written = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8');

/** Set by Posthorn or the system, not by a user. */
const NOT_SETTINGS = new Set(['PATH', 'POSTHORN_PARENT_PID']);

describe('docs/configuration.md', () => {
  it('is up to date with the schemas (node docs/write-configuration.ts)', () => {
    expect(written).toBe(configurationText());
  });

  it('lists every variable that the local stack reads by name', () => {
    const local = written.slice(written.indexOf('## The local stack'));
    const read = localVariables().filter((name) => !NOT_SETTINGS.has(name));
    expect(read).toContain('STACK_DIR');
    expect(read.filter((name) => !local.includes(`\`${name}\``))).toEqual([]);
  });
});

/** Names in `env.NAME` and in `readPort(env, 'NAME')` or `setOr(env, 'NAME')`. */
function localVariables(): string[] {
  const files = globSync('tools/local-stack/**/*.{ts,mjs}', { cwd: ROOT });
  const texts = files.map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n');
  const reads = texts.matchAll(/\benv(?:\.|, ')([A-Z][A-Z_]+)\b/g);
  return [...new Set([...reads].map(([, name = '']) => name))].sort();
}

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
    ['retry', 'posthorn_dead_letter_records_total', 'reason', 'unreadable_record'],
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

const sources = globSync('{services,libs}/**/*.ts', {
  cwd: ROOT,
  exclude: (path) => path.includes('node_modules'),
})
  .filter((path) => !path.endsWith('.test.ts'))
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n');
const known = new Set(sources.match(/(?<=')posthorn_[a-z0-9_]+(?=')/g));

/** Names in a text of PromQL, a histogram by its own name. */
function namesIn(text: string): string[] {
  return (text.match(/\bposthorn_[a-z0-9_]+/g) ?? []).map((name) =>
    known.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ''),
  );
}

it.each([
  ['alerts', readAlerts().map(({ expr }) => expr)],
  ['the rules beside them', [readFileSync(join(ROOT, ALERT_FILES[0]), 'utf8')]],
  [
    'dashboards',
    DASHBOARDS.flatMap(({ rows }) => rows)
      .flatMap(({ panels }) => panels.flatMap(({ queries }) => queries))
      .map(({ expr }) => expr),
  ],
  ['the runbook', [readFileSync(join(ROOT, 'docs/runbook.md'), 'utf8')]],
])('%s ask for metrics that exist', (_where, texts) => {
  const notMetrics = new Set(['posthorn_docs']);
  const unknown = texts
    .flatMap(namesIn)
    .filter((name) => !known.has(name) && !notMetrics.has(name));
  expect([...new Set(unknown)]).toEqual([]);
});
