import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from '../../tools/local-stack/machine/describe-machine.ts';
import type { Report } from './report.ts';

export const RESULTS = join(import.meta.dirname, '../results');

/** Writes SCENARIO-TIME.json. Returns its name without the ending. */
export function writeReport(report: Report): string {
  const name = `${report.scenario}-${report.startedAt.slice(0, 19).replaceAll(':', '')}`;
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(report, null, 1)}\n`);
  return name;
}

export function describe({ cpu, cores, memoryGiB, system, ...versions }: Machine): string {
  const { node, kafka, mongodb, redis, commit } = versions;
  return [
    `${cores} × ${cpu}, ${memoryGiB} GiB, ${system}`,
    `Node ${node}, Kafka ${kafka}, MongoDB ${mongodb}, Redis ${redis}, commit ${commit}`,
  ].join('; ');
}
