import type * as Simulate from './simulate.ts';
import { installVirtualTimers } from './deterministic/virtual-time.ts';

export type Simulation = typeof Simulate;

/** Imports the simulation after it has replaced the timers, so that its code waits in virtual time. */
export async function loadSimulation(): Promise<Simulation> {
  installVirtualTimers();
  return import('./simulate.ts');
}
