import type { SimulationResult } from './simulate.ts';

/** What happened, in one paragraph. */
export function describeRun(result: SimulationResult): string {
  const { seed, events, virtualMs, evidence, mongo, violations } = result;
  const statuses = [...mongo.of('deliveries').values()].map(({ status }) => String(status));
  const counts = [...new Set(statuses)]
    .map((status) => `${statuses.filter((each) => each === status).length} ${status}`)
    .join(', ');
  const requests = [...evidence.made.values()].map(({ length }) => length);
  const made = requests.reduce((sum, each) => sum + each, 0);
  const hours = (virtualMs / 3_600_000).toFixed(1);
  return [
    `seed ${seed}: ${events} events in ${hours} simulated hours`,
    `deliveries: ${counts || 'none'}`,
    `requests: ${made}, of which ${made - requests.length} were duplicates`,
    violations.length === 0 ? 'every invariant held' : violations.map(toFault).join('\n'),
  ].join('\n');
}

/** For whoever reads a failed check: what did not hold, and how to see it again. */
export function describeFailure(result: SimulationResult): string {
  return `${describeRun(result)}\nto see it again: npm run simulate -- --seed ${result.seed}`;
}

function toFault(violation: string): string {
  return `VIOLATED: ${violation}`;
}
