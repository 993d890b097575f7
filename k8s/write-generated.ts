import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chartReadme } from './chart-readme.ts';
import { renderedFiles } from './rendered-chart.ts';
import { DEFAULT_PARTITIONS, stepsGroup, yamlOf } from './scaling-steps.ts';

const ROOT = join(import.meta.dirname, '..');
const CHART = 'deploy/helm/posthorn';
/** Follows from the number of partitions; the chart calculates it. */
const STEPS = 'deploy/prometheus/scaling-steps.yaml';

/**
 * Returns the files that are made without Helm, by path from the root: the README of the chart, and the steps of Prometheus beside
 * docker-compose.yml.
 */
export function copiedFiles(): Map<string, string> {
  const steps = yamlOf({ groups: [stepsGroup(DEFAULT_PARTITIONS)] });
  const number = `${DEFAULT_PARTITIONS} partitions; of others: node k8s/print-scaling-steps.ts`;
  return new Map([
    [STEPS, `# Written by k8s/write-generated.ts for ${number}\n${steps}`],
    [`${CHART}/README.md`, chartReadme(read(`${CHART}/README.md`), read(`${CHART}/values.yaml`))],
  ]);
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
