import type * as Simulate from './simulate.ts';
import type { SimulationResult } from './simulate.ts';
import { installVirtualTimers } from './deterministic/virtual-time.ts';

export type Simulation = typeof Simulate;

/** Imports the simulation after it has replaced the timers, so that its code waits in virtual time. */
export async function loadSimulation(): Promise<Simulation> {
  installVirtualTimers();
  return import('./simulate.ts');
}

/** Returns a summary of a run. */
export function describeRun(result: SimulationResult): string {
  const { seed, events, virtualMs, observations, mongo, violations } = result;
  const statuses = [...mongo.collection('deliveries').values()].map(({ status }) => String(status));
  const counts = [...new Set(statuses)]
    .map((status) => `${statuses.filter((each) => each === status).length} ${status}`)
    .join(', ');
  const requests = [...observations.requests.values()].map(({ length }) => length);
  const made = requests.reduce((sum, each) => sum + each, 0);
  const hours = (virtualMs / 3_600_000).toFixed(1);
  return [
    `seed ${seed}: ${events} events in ${hours} simulated hours`,
    `deliveries: ${counts || 'none'}`,
    `requests: ${made}, ${made - requests.length} of them duplicates`,
    violations.length === 0 ? 'every invariant held' : violations.map(toViolationLine).join('\n'),
  ].join('\n');
}

/** Returns a summary of a failed run, with the command that repeats it. */
export function describeFailure(result: SimulationResult): string {
  return `${describeRun(result)}\nto repeat it: npm run simulate -- --seed ${result.seed}`;
}

function toViolationLine(violation: string): string {
  return `VIOLATED: ${violation}`;
}
