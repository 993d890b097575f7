import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { DASHBOARDS } from '../../deploy/grafana/source/dashboards.ts';
import { grafanaJson } from '../../deploy/grafana/source/grafana-json.ts';
import { readAlertCases, readAlerts } from '../../deploy/prometheus/read-alerts.ts';

const alerts = readAlerts();
const cases = readAlertCases();
const names = alerts.map(({ alert }) => alert);

const runbook = readFileSync(join(import.meta.dirname, '../../docs/runbook.md'), 'utf8');
/** Name of the alert → the text below its heading. */
const paragraphs = new Map(
  runbook
    .split(/^### /m)
    .slice(1)
    .map((section): [string, string] => {
      const [heading = '', ...text] = section.split('\n');
      return [heading, text.join('\n')];
    }),
);

describe.each(alerts)('$alert', ({ alert, labels, annotations, expr }) => {
  const own = cases.filter((each) => each.alert === alert);

  it('has a case in which it fires and one in which it is silent', () => {
    expect(own.some(({ isFiring }) => isFiring)).toBe(true);
    expect(own.some(({ isFiring }) => !isFiring)).toBe(true);
  });

  it('links to its paragraph', () => {
    expect(annotations.runbook_url).toBe(
      '{{ with $externalLabels.posthorn_docs }}{{ . }}/{{ end }}' +
        `runbook.md#${alert.toLowerCase()}`,
    );
  });

  it('has a paragraph with its meaning, how to see it and what to do', () => {
    expect(paragraphs.get(alert)).toMatch(
      new RegExp(`^\\s*- _${labels.severity}_[^]*\\*\\*See\\.\\*\\*[^]*\\*\\*Do\\.\\*\\*`),
    );
  });

  it('separates installations', () => {
    expect(expr).toMatch(/by \(namespace|:ratio_rate/);
  });
});

describe('docs/runbook.md', () => {
  it('has the alerts in the order of the rules, and no other', () => {
    expect([...paragraphs.keys()]).toEqual(names);
  });
});

describe('the cases', () => {
  it('are about alerts that exist, each with a name of its own', () => {
    expect(cases.filter(({ alert }) => !names.includes(alert))).toEqual([]);
    const titles = cases.map(({ name }) => name);
    expect([...new Set(titles)]).toEqual(titles);
  });
});

const FOLDER = join(import.meta.dirname, '../../deploy/helm/posthorn/files/dashboards');

describe.each(DASHBOARDS)('the dashboard "$title"', (dashboard) => {
  it('is up to date: `node deploy/grafana/source/write-dashboards.ts` writes it', () => {
    const written = readFileSync(join(FOLDER, `${dashboard.name}.json`), 'utf8');
    expect(JSON.parse(written)).toEqual(JSON.parse(grafanaJson(dashboard)));
  });

  it('has a title for each panel that no other panel of its row has', () => {
    for (const { panels } of dashboard.rows) {
      const titles = panels.map(({ title }) => title);
      expect([...new Set(titles)]).toEqual(titles);
    }
  });

  it('keeps to the chosen namespace', () => {
    const queries = dashboard.rows.flatMap(({ panels }) => panels.flatMap((each) => each.queries));
    expect(queries.filter(({ expr }) => !expr.includes('SCOPE'))).toEqual([]);
  });
});

it('every dashboard in the folder has a source', () => {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
  expect(files.sort()).toEqual(DASHBOARDS.map(({ name }) => `${name}.json`).sort());
});

const read = (path: string): unknown =>
  parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'), { merge: true });

const prometheus = z
  .object({
    scrape_configs: z.array(
      z.object({
        job_name: z.string(),
        dns_sd_configs: z.tuple([z.object({ names: z.tuple([z.string()]), port: z.number() })]),
      }),
    ),
  })
  .parse(read('deploy/prometheus/prometheus.yaml'));

const compose = z
  .object({
    services: z.record(
      z.string(),
      z.looseObject({ environment: z.looseObject({ OPS_PORT: z.number().optional() }).optional() }),
    ),
  })
  .parse(read('docker-compose.yml'));

it('Prometheus scrapes the management port of each service of docker-compose.yml', () => {
  const scraped = prometheus.scrape_configs.map(({ job_name: job, dns_sd_configs: [found] }) => [
    job,
    found.names[0],
    found.port,
  ]);
  const served = Object.entries(compose.services).flatMap(([name, { environment }]) =>
    environment?.OPS_PORT === undefined ? [] : [[`posthorn-${name}`, name, environment.OPS_PORT]],
  );
  expect(scraped).toEqual(served);
});
