import type * as Simulate from './simulate.ts';
import { installTimers } from './chance/virtual-time.ts';

export type Simulation = typeof Simulate;

/** The timers first: what is imported after them waits in virtual time. */
export async function loadSimulation(): Promise<Simulation> {
  installTimers();
  return import('./simulate.ts');
}
