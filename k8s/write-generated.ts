import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';
import { chartReadme } from './chart-readme.ts';
import { renderedFiles } from './rendered-chart.ts';
import { DEFAULT_PARTITIONS, stepsGroup, yamlOf } from './scaling-steps.ts';

const ROOT = join(import.meta.dirname, '..');
const CHART = 'deploy/helm/posthorn';
const RULES = 'deploy/prometheus';
/** Follows from the number of partitions; the chart calculates it. */
const STEPS = 'scaling-steps.yaml';

/**
 * Returns the files that are made without Helm, by path from the root: what the chart has of deploy/prometheus and deploy/grafana,
 * because a package contains only its own folder, its README, and the steps of Prometheus beside docker-compose.yml.
 */
export function copiedFiles(): Map<string, string> {
  const steps = yamlOf({ groups: [stepsGroup(DEFAULT_PARTITIONS)] });
  const number = `${DEFAULT_PARTITIONS} partitions; of others: node k8s/print-scaling-steps.ts`;
  return new Map([
    [`${RULES}/${STEPS}`, `# Written by k8s/write-generated.ts for ${number}\n${steps}`],
    [`${CHART}/files/rules.yaml`, rulesText()],
    [`${CHART}/README.md`, chartReadme(read(`${CHART}/README.md`), read(`${CHART}/values.yaml`))],
    ...globSync('deploy/grafana/*.json', { cwd: ROOT }).map((file): [string, string] => [
      `${CHART}/files/dashboards/${basename(file)}`,
      read(file),
    ]),
  ]);
}

/** The rule groups of every file in deploy/prometheus that has some, in the order of file names, but for the steps. */
function rulesText(): string {
  const files = globSync('*.yaml', { cwd: join(ROOT, RULES) }).filter((file) => file !== STEPS);
  const groups = files.sort().flatMap((file) => {
    const content = parse(read(`${RULES}/${file}`)) as { groups?: unknown[] };
    return content.groups ?? [];
  });
  return `# From ${RULES}, written by k8s/write-generated.ts.\n${stringify({ groups }, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function write(files: ReadonlyMap<string, string>): void {
  for (const [path, text] of files) {
    const file = join(ROOT, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

if (import.meta.main) {
  write(copiedFiles());
  // Needs Go, which builds Helm once per user.
  write(await renderedFiles((line) => process.stderr.write(`${line}\n`)));
}
