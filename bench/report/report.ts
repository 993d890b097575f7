import type { JudgedGoal } from '../measure/goals.ts';
import type { Phase } from '../measure/measure-phase.ts';
import type { Machine } from '../stack/machine.ts';
import type { Column } from './chart.ts';

/** What is printed as a table: the name of each row, and its cells by their columns. */
export interface Table {
  title: string;
  rows: Record<string, object>;
  /** Lines below it. */
  notes: string[];
}

/** Everything that one run of a scenario found; what is written as JSON. */
export interface Report {
  scenario: string;
  startedAt: string;
  machine: Machine;
  options: Record<string, number>;
  phases: Phase[];
  goals: JudgedGoal[];
  tables: Table[];
  /** False when a message is missing or was refused. */
  isWhole: boolean;
  extra: Record<string, unknown>;
  /** Charts that only this scenario draws. */
  columns: Column[];
}

export function isWhole(phases: readonly Phase[]): boolean {
  return phases.every(({ missing, refused }) => missing === 0 && Object.keys(refused).length === 0);
}
