import { type World } from './world.ts';

const JUMPS_MS = [-3_600_000, 0, 3_600_000] as const;

/** Decides at each step whether a fault strikes; there are as many as the plan says. */
export function createStrike(world: Pick<World, 'plan' | 'random'>): World['strike'] {
  const { plan, random } = world;
  let left = plan.faults;
  return (process) => {
    if (left === 0 || !process.isAlive() || !random.isHit(plan.faultRate)) return;
    left -= 1;
    const fault = random.pick(['crash', 'crash', 'group', 'group', 'clock']);
    if (fault === 'crash') process.crash();
    else if (fault === 'clock' && plan.hasJumps) process.setClock(random.pick(JUMPS_MS));
    else process.disturbGroup();
  };
}
