import { closedLoop, openLoop } from '../load/loops.ts';
import type { Phase } from '../measure/measure-phase.ts';
import type { Goal } from '../figures/goals.ts';
import { defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './warm-up.ts';

export const accept = defineScenario({
  summary: 'how fast the gateway responds: closed loop, then a fixed rate',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 20, meaning: 'seconds of each phase' },
    rate: { default: 650, meaning: 'messages per second of the open loop' },
  },
  async run(bench, { warmup, endpoints, seconds, rate }) {
    const load = await bench.openEndpoints({ count: endpoints });
    await warmUp(bench, load, { warmup });
    const closed = await bench.measure({
      name: `closed loop, ${CONNECTIONS} connections`,
      load: () => closedLoop(load, { connections: CONNECTIONS, seconds }),
    });
    const open = await bench.measure({
      name: `open loop, ${rate}/s`,
      load: () => openLoop(load, { ratePerSecond: rate, seconds }),
    });
    return { phases: [closed, open], goals: goalsOf(closed, open) };
  },
});

function goalsOf(closed: Phase, open: Phase): Goal[] {
  const acceptWithin = (name: string, measured: number | null, atMost: number): Goal => ({
    name,
    unit: 'ms',
    atMost,
    measured,
  });
  return [
    {
      name: 'closed loop: accepted',
      unit: '/s',
      atLeast: 3_000,
      measured: closed.acceptedPerSecond,
    },
    acceptWithin('closed loop: accept p99', closed.acceptMs.p99, 50),
    acceptWithin(`${open.name}: accept p50`, open.acceptMs.p50, 8),
    acceptWithin(`${open.name}: accept p99`, open.acceptMs.p99, 20),
  ];
}
