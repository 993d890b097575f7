import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Phase } from '../measure/phase.ts';
import type { Machine } from '../../tools/local-stack/machine/describe-machine.ts';
import type { Spending } from '../measure/spending.ts';
import { GENERATOR } from '../measure/watch-usage.ts';

/** A table: the name of each row, and its cells by column. */
export interface Table {
  title: string;
  rows: Record<string, object>;
  /** Lines below it. */
  notes: string[];
}

/** All measurements of one run of a scenario, as they are written as JSON. */
export interface Report {
  scenario: string;
  startedAt: string;
  machine: Machine;
  options: Record<string, number | string>;
  phases: Phase[];
  goals: JudgedGoal[];
  tables: Table[];
  /** False when a message is missing or was refused. */
  isComplete: boolean;
  extra: Record<string, unknown>;
}

export function isComplete(phases: readonly Phase[]): boolean {
  return phases.every(({ missing, refused }) => missing === 0 && Object.keys(refused).length === 0);
}

/** A target of a scenario, and the measured value. */
export interface Goal {
  name: string;
  unit: string;
  /** Met when the measured value is not above (atMost) or not below (atLeast) the limit. */
  atMost?: number;
  atLeast?: number;
  /** Null when it could not be measured. */
  measured: number | null;
}

interface JudgedGoal extends Goal {
  isMet: boolean;
}

export function judge(goal: Goal): JudgedGoal {
  const { measured, atMost = Infinity, atLeast = -Infinity } = goal;
  return { ...goal, isMet: measured !== null && measured <= atMost && measured >= atLeast };
}

export function describeLimit({ atMost, atLeast, unit }: Goal): string {
  const parts = [
    atLeast === undefined ? '' : `≥ ${atLeast}`,
    atMost === undefined ? '' : `≤ ${atMost}`,
  ];
  return `${parts.filter(Boolean).join(', ')} ${unit}`.trim();
}

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

export function printReport(report: Report): void {
  for (const phase of report.phases) printPhase(phase);
  for (const table of report.tables) printTable(table);
  printExtra(report.extra);
  if (report.goals.length > 0) console.table(report.goals.map(goalRow));
  if (!report.isComplete) console.log('INCOMPLETE: messages are missing or were refused.');
}

function printTable({ title, rows, notes }: Table): void {
  console.log(`\n${title}`);
  console.table(rows);
  for (const note of notes) console.log(note);
}

function goalRow({ isMet, ...goal }: Report['goals'][number]) {
  return {
    figure: goal.name,
    target: describeLimit(goal),
    measured: goal.measured ?? 'not measured',
    met: isMet ? 'met' : 'NOT MET',
  };
}

function printPhase(phase: Phase): void {
  console.log(`\n${phase.name} (${phase.seconds} s)`);
  console.table({
    accept: phase.acceptMs,
    'end to end': phase.endToEndMs,
    'generator late': phase.generatorLateMs,
  });
  console.log(countsOf(phase));
  if (Object.keys(phase.parts).length > 1) printParts(phase);
  else
    console.log(
      'CPU and memory of the parts: not available (they are read from /proc, on Linux only).',
    );
}

function countsOf({ refused, toFailing, ...phase }: Phase): string {
  const refusals = Object.entries(refused).map(([status, count]) => `${count} × ${status}`);
  const counts = [
    `accepted ${phase.acceptedPerSecond}/s`,
    `delivered ${phase.deliveredPerSecond}/s`,
    `refused ${refusals.join(', ') || 0}`,
    `missing ${phase.missing}`,
    `duplicates ${phase.duplicates}`,
  ];
  if (toFailing.accepted > 0) {
    counts.push(
      `to endpoints that hang or fail ${toFailing.accepted} (attempted ${toFailing.attempted})`,
    );
  }
  return counts.join(', ');
}

function printParts(phase: Phase): void {
  console.table(partRows(phase));
  for (const note of spendingNotes(phase)) console.log(note);
}

/** Lists are long, and only written to the file. */
function printExtra(extra: Report['extra']): void {
  for (const [name, value] of Object.entries(extra)) {
    if (!Array.isArray(value)) console.log(name, value);
  }
}

/** Usual use by interrupts, kernel threads and small background work. */
const USUAL_OTHER_CORES = 0.2;

/** Returns the CPU and memory of each part, as rows of a table. */
export function partRows({ parts }: Pick<Spending, 'parts'>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(parts).map(([name, { cpuSecondsPer1000: cpu, cores, residentMiB }]) => [
      name === GENERATOR ? `${name} and receivers` : name,
      { 'CPU s per 1,000': cpu, cores, 'resident MiB': residentMiB },
    ]),
  );
}

export function spendingNotes({ cpuSecondsPer1000, otherCores }: Spending): string[] {
  const cpu =
    cpuSecondsPer1000 === null
      ? 'CPU of Posthorn and its stores: not available, the stores run in containers.'
      : `CPU of Posthorn and its stores: ${cpuSecondsPer1000} s per 1,000`;
  const isAlone = otherCores === null || otherCores <= USUAL_OTHER_CORES;
  if (isAlone) return [cpu];
  return [cpu, `DISTURBED: the rest of the machine used ${otherCores} cores meanwhile.`];
}
