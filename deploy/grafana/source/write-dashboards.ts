import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DASHBOARDS } from './dashboards.ts';
import { grafanaJson } from './grafana-json.ts';

/** Writes deploy/grafana/*.json. */
for (const dashboard of DASHBOARDS) {
  writeFileSync(join(import.meta.dirname, `../${dashboard.name}.json`), grafanaJson(dashboard));
}
