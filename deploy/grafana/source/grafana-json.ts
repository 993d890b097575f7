import { compactJson } from '../../compact-json.ts';
import { inGrafana, type Dashboard, type Panel } from './dashboard.ts';

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
const COLUMNS = 24;
const PANEL_HEIGHT = 7;
/** The version of the format that Grafana 10 and later read without a migration. */
const SCHEMA_VERSION = 39;

/** Returns the JSON that Grafana imports and provisions. */
export function grafanaJson({ name, title, description, rows }: Dashboard): string {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    const width = Math.floor(COLUMNS / row.panels.length);
    panels.push(rowJson(row.title, panels.length + 1, y));
    row.panels.forEach((panel, index) => {
      const gridPos = { h: PANEL_HEIGHT, w: width, x: index * width, y: y + 1 };
      panels.push(panelJson(panel, panels.length + 1, gridPos));
    });
    y += 1 + PANEL_HEIGHT;
  }
  const dashboard = {
    uid: `posthorn-${name}`,
    title: `Posthorn / ${title}`,
    description,
    tags: ['posthorn'],
    schemaVersion: SCHEMA_VERSION,
    editable: true,
    graphTooltip: 1,
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    timezone: '',
    links: [{ type: 'dashboards', title: 'Posthorn', tags: ['posthorn'], asDropdown: false }],
    templating: { list: [DATASOURCE_VARIABLE, NAMESPACE_VARIABLE] },
    panels,
  };
  return compactJson(dashboard);
}

const DATASOURCE_VARIABLE = {
  name: 'datasource',
  label: 'Data source',
  type: 'datasource',
  query: 'prometheus',
};

/** An installation without namespaces is found by "All". */
const NAMESPACE_VARIABLE = {
  name: 'namespace',
  label: 'Namespace',
  type: 'query',
  datasource: DATASOURCE,
  query: { query: 'label_values(posthorn_build_info, namespace)', refId: 'namespace' },
  refresh: 2,
  includeAll: true,
  allValue: '.*',
  current: { text: 'All', value: '$__all' },
};

function rowJson(title: string, id: number, y: number): object {
  const gridPos = { h: 1, w: COLUMNS, x: 0, y };
  return { id, type: 'row', title, collapsed: false, gridPos, panels: [] };
}

function panelJson(
  { title, description, unit, queries }: Panel,
  id: number,
  gridPos: object,
): object {
  return {
    id,
    type: 'timeseries',
    title,
    ...(description !== undefined && { description }),
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr: inGrafana(expr),
      legendFormat: legend,
    })),
  };
}
