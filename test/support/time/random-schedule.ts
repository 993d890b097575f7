/** Steps of several processes, one at a time. */
export interface RandomSchedule {
  /** The time, which passes by up to two seconds with each step. */
  nowMs: number;
  /** Resolves when it is the turn of this step. */
  turn: () => Promise<void>;
  /** Runs one step. Returns false when none waits. */
  runOne: () => Promise<boolean>;
  /** Runs steps until none waits. */
  runAll: () => Promise<void>;
}

const MAX_STEP_MS = 2_000;

/** Steps that wait are done in an order that the random numbers decide, from 0 to below 1. */
export function createRandomSchedule(random: () => number): RandomSchedule {
  const waiting: (() => void)[] = [];
  const schedule: RandomSchedule = {
    nowMs: 0,
    turn: () => new Promise((resolve) => waiting.push(resolve)),
    async runOne() {
      // All that follows from the step before.
      await new Promise((resolve) => setImmediate(resolve));
      const [next] = waiting.splice(Math.floor(random() * waiting.length), 1);
      if (!next) return false;
      schedule.nowMs += random() * MAX_STEP_MS;
      next();
      return true;
    },
    async runAll() {
      while (await schedule.runOne());
    },
  };
  return schedule;
}
