import type { MemorySample } from '../usage/watch-memory.ts';

/** The first, the highest and the last value; null where none could be read. */
export interface Course {
  before: number | null;
  highest: number | null;
  after: number | null;
}

export interface MemoryFigures {
  residentMiB: Course;
  heapUsedMiB: Course;
  timers: Course;
}

export function memoryFigures(samples: readonly MemorySample[]): MemoryFigures {
  return {
    residentMiB: courseOf(samples.map(({ residentMiB }) => residentMiB)),
    heapUsedMiB: courseOf(samples.map(({ heapUsedMiB }) => heapUsedMiB)),
    timers: courseOf(samples.map(({ timers }) => timers)),
  };
}

function courseOf(values: readonly (number | null)[]): Course {
  return { before: values[0] ?? null, highest: highestOf(values), after: values.at(-1) ?? null };
}

export function highestOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}
