import type { Spending } from '../measure/spending.ts';
import { GENERATOR } from '../usage/watch-usage.ts';

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
