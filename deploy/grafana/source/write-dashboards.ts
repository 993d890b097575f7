import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DASHBOARDS } from './dashboards.ts';
import { grafanaJson } from './grafana-json.ts';

/** A packed chart has its own folder only, so the dashboards are there. */
const FOLDER = join(import.meta.dirname, '../../helm/posthorn/files/dashboards');

for (const dashboard of DASHBOARDS) {
  writeFileSync(join(FOLDER, `${dashboard.name}.json`), grafanaJson(dashboard));
}
