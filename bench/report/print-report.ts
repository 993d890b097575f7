import { describeLimit } from '../measure/goals.ts';
import type { Phase } from '../measure/measure-phase.ts';
import { GENERATOR } from '../stack/watch-usage.ts';
import type { Report } from './report.ts';

export function printReport(report: Report): void {
  for (const phase of report.phases) printPhase(phase);
  printExtra(report.extra);
  if (report.goals.length > 0) console.table(report.goals.map(goalRow));
  if (!report.isWhole) console.log('NOT WHOLE: messages are missing or were refused.');
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
  else console.log('CPU and memory of the parts: not available (read from /proc, on Linux only).');
}

function countsOf({ refused, aside, ...phase }: Phase): string {
  const refusals = Object.entries(refused).map(([status, count]) => `${count} × ${status}`);
  const counts = [
    `accepted ${phase.acceptedPerSecond}/s`,
    `delivered ${phase.deliveredPerSecond}/s`,
    `refused ${refusals.join(', ') || 0}`,
    `missing ${phase.missing}`,
    `duplicates ${phase.duplicates}`,
  ];
  if (aside.accepted > 0) {
    counts.push(`to endpoints that hang or fail ${aside.accepted} (attempted ${aside.attempted})`);
  }
  return counts.join(', ');
}

/** Interrupts and the kernel's own threads, and what this run is not alone with. */
const USUAL_OTHER_CORES = 0.2;

function printParts({ parts, cpuSecondsPer1000, otherCores }: Phase): void {
  console.table(
    Object.fromEntries(
      Object.entries(parts).map(([name, { cpuSecondsPer1000: cpu, cores, residentMiB }]) => [
        name === GENERATOR ? `${name} and receivers` : name,
        { 'CPU s per 1,000': cpu, cores, 'resident MiB': residentMiB },
      ]),
    ),
  );
  console.log(
    cpuSecondsPer1000 === null
      ? 'CPU of Posthorn and its stores: not available, the stores run in containers.'
      : `CPU of Posthorn and its stores: ${cpuSecondsPer1000} s per 1,000`,
  );
  if (otherCores !== null && otherCores > USUAL_OTHER_CORES) {
    console.log(`NOT ALONE: the rest of the machine used ${otherCores} cores meanwhile.`);
  }
}

/** Long lists are for the file. */
function printExtra(extra: Report['extra']): void {
  for (const [name, value] of Object.entries(extra)) {
    if (!Array.isArray(value)) console.log(name, value);
  }
}
