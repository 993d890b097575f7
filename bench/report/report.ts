import type { JudgedGoal } from '../figures/goals.ts';
import type { Phase } from '../measure/measure-phase.ts';
import type { Machine } from '../../tools/local-stack/machine/describe-machine.ts';

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
  options: Record<string, number>;
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
