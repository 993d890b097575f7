import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from '../../tools/local-stack/machine/describe-machine.ts';
import { drawChart } from './chart.ts';
import { phaseColumn } from './phase-column.ts';
import type { Report } from './report.ts';

export const RESULTS = join(import.meta.dirname, '../results');

/** Writes SCENARIO-TIME.json and .svg. Returns their common name. */
export function writeReport({ columns, ...report }: Report): string {
  const name = `${report.scenario}-${report.startedAt.slice(0, 19).replaceAll(':', '')}`;
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(report, null, 1)}\n`);
  const svg = drawChart({
    title: `${report.scenario}, ${report.startedAt}`,
    notes: [describe(report.machine), goalsNote(report)],
    columns: [...report.phases.map(phaseColumn), ...columns],
  });
  writeFileSync(join(RESULTS, `${name}.svg`), svg);
  return name;
}

export function describe({ cpu, cores, memoryGiB, system, ...versions }: Machine): string {
  const { node, kafka, mongodb, redis, commit } = versions;
  return [
    `${cores} × ${cpu}, ${memoryGiB} GiB, ${system}`,
    `Node ${node}, Kafka ${kafka}, MongoDB ${mongodb}, Redis ${redis}, commit ${commit}`,
  ].join('; ');
}

function goalsNote({ goals, isComplete }: Pick<Report, 'goals' | 'isComplete'>): string {
  const met = goals.filter(({ isMet }) => isMet).length;
  const whole = isComplete ? 'every message arrived' : 'messages are missing or were refused';
  return goals.length === 0 ? whole : `${met} of ${goals.length} targets met; ${whole}`;
}
