import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { readAlerts } from '../../deploy/prometheus/read-alerts.ts';
import { DASHBOARDS } from '../../deploy/grafana/source/dashboards.ts';

const ROOT = join(import.meta.dirname, '../..');

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
  ['the rules beside them', [readFileSync(join(ROOT, 'deploy/prometheus/alerts.yaml'), 'utf8')]],
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
