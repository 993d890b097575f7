import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rounded } from '../measure/figures.ts';
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

export const atMost = (name: string, limit: number, unit: string, measured: number | null) =>
  ({ name, unit, atMost: limit, measured }) satisfies Goal;

export const atLeast = (name: string, limit: number, unit: string, measured: number | null) =>
  ({ name, unit, atLeast: limit, measured }) satisfies Goal;

/** Returns null when one of both is missing, and when the second is 0. */
export function ratio(one: number | null | undefined, other: number | null | undefined) {
  return typeof one === 'number' && typeof other === 'number' && other !== 0
    ? rounded(one / other, 2)
    : null;
}

interface JudgedGoal extends Goal {
  isMet: boolean;
}

export function judge(goal: Goal): JudgedGoal {
  const { measured, atMost = Infinity, atLeast = -Infinity } = goal;
  return { ...goal, isMet: measured !== null && measured <= atMost && measured >= atLeast };
}

export function describeLimit({ atMost, atLeast, unit }: Goal): string {
  const limit = atMost === undefined ? `≥ ${String(atLeast)}` : `≤ ${atMost}`;
  return `${limit} ${unit}`.trim();
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
  for (const { title, rows, notes } of report.tables) {
    console.log(`\n${title}`);
    console.table(rows);
    for (const note of notes) console.log(note);
  }
  // Lists are long, and only written to the file.
  for (const [name, value] of Object.entries(report.extra)) {
    if (!Array.isArray(value)) console.log(name, value);
  }
  if (report.goals.length > 0) console.table(report.goals.map(goalRow));
  if (!report.isComplete) console.log('INCOMPLETE: messages are missing or were refused.');
}

function goalRow({ isMet, ...goal }: JudgedGoal) {
  return {
    figure: goal.name,
    target: describeLimit(goal),
    measured: goal.measured ?? 'not measured',
    met: isMet ? 'met' : 'NOT MET',
  };
}

function printPhase({ refused, toFailing, ...phase }: Phase): void {
  console.log(`\n${phase.name} (${phase.seconds} s)`);
  console.table({
    accept: phase.acceptMs,
    'end to end': phase.endToEndMs,
    'generator late': phase.generatorLateMs,
  });
  const refusals = Object.entries(refused).map(([status, count]) => `${count} × ${status}`);
  console.log(
    `accepted ${phase.acceptedPerSecond}/s, delivered ${phase.deliveredPerSecond}/s, ` +
      `refused ${refusals.join(', ') || 0}, missing ${phase.missing}, duplicates ${phase.duplicates}, ` +
      `to endpoints that hang or fail ${toFailing.accepted} (attempted ${toFailing.attempted})`,
  );
  console.table(partRows(phase));
  for (const note of spendingNotes(phase)) console.log(note);
}

/** Usual use by interrupts, kernel threads and small background work. */
const USUAL_OTHER_CORES = 0.2;

/** Returns the CPU and memory of each part, as rows of a table. Only those that can be read from /proc. */
export function partRows({ parts }: Pick<Spending, 'parts'>): Table['rows'] {
  return Object.fromEntries(
    Object.entries(parts).map(([name, { cpuSecondsPer1000: cpu, cores, residentMiB }]) => [
      name === GENERATOR ? `${name} and receivers` : name,
      { 'CPU s per 1,000': cpu, cores, 'resident MiB': residentMiB },
    ]),
  );
}

export function spendingNotes({ cpuSecondsPer1000, otherCores }: Spending): string[] {
  const cpu = `CPU of Posthorn and its stores: ${cpuSecondsPer1000 ?? 'not known,'} s per 1,000`;
  const isAlone = otherCores === null || otherCores <= USUAL_OTHER_CORES;
  if (isAlone) return [cpu];
  return [cpu, `DISTURBED: the rest of the machine used ${otherCores} cores meanwhile.`];
}
