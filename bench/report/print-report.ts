import { describeLimit } from '../figures/goals.ts';
import type { Phase } from '../measure/measure-phase.ts';
import { partRows, spendingNotes } from './part-rows.ts';
import type { Report, Table } from './report.ts';

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
