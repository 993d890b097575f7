import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { DASHBOARDS } from '../../deploy/grafana/source/dashboards.ts';
import { grafanaJson } from '../../deploy/grafana/source/grafana-json.ts';

const FOLDER = join(import.meta.dirname, '../../deploy/grafana');

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
