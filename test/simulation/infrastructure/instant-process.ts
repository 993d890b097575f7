import type { SimulatedProcess } from './simulated-process.ts';

/** A process whose requests take effect and succeed at once, for tests of the simulated stores. */
export const INSTANT_PROCESS: Pick<SimulatedProcess, 'request' | 'nowMs'> = {
  nowMs: () => Date.now(),
  request({ effects, respond }) {
    for (const effect of effects) effect();
    return new Promise((resolve) => {
      resolve(respond());
    });
  },
};
