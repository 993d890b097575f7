import { type World } from './world.ts';

const JUMPS_MS = [-3_600_000, 0, 3_600_000] as const;

/** Returns a function that injects a fault at random, until the faults of the plan are used up. */
export function createFaultInjector(world: Pick<World, 'plan' | 'random'>): World['injectFault'] {
  const { plan, random } = world;
  let left = plan.faults;
  return (process) => {
    if (left === 0 || !process.isAlive() || !random.bool(plan.faultRate)) return;
    left -= 1;
    const fault = random.pick(['crash', 'crash', 'group', 'group', 'clock']);
    if (fault === 'crash') process.crash();
    else if (fault === 'clock' && plan.hasClockJumps) process.setClock(random.pick(JUMPS_MS));
    else process.rebalanceGroup();
  };
}
