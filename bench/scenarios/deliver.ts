import { closedLoop, openLoop } from '../load/loops.ts';
import type { Goal } from '../report/report.ts';
import type { Phase } from '../measure/phase.ts';
import { defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './warm-up.ts';

export const deliver = defineScenario({
  summary: 'end to end: closed loop, then two fixed rates',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of each phase' },
    rate: { default: 650, meaning: 'messages per second of the first open loop' },
    'high-rate': { default: 1_200, meaning: 'messages per second of the second open loop' },
  },
  async run(bench, { warmup, endpoints, seconds, rate, 'high-rate': highRate }) {
    const load = await bench.openEndpoints({ count: endpoints });
    await warmUp(bench, load, { warmup });
    const atRate = async (ratePerSecond: number): Promise<Phase> => {
      await openLoop(load, { ratePerSecond, seconds: RUN_IN_SECONDS });
      return bench.measure({
        name: `open loop, ${ratePerSecond}/s`,
        load: () => openLoop(load, { ratePerSecond, seconds }),
      });
    };
    const closed = await bench.measure({
      name: `closed loop, ${CONNECTIONS} connections`,
      load: () => closedLoop(load, { connections: CONNECTIONS, seconds }),
    });
    const open = await atRate(rate);
    const high = await atRate(highRate);
    return {
      phases: [closed, open, high],
      goals: [...closedGoals(closed), ...openGoals(open), ...highGoals(high)],
    };
  },
});

/** Before each rate is measured: the group commit takes some seconds to adapt to it. */
const RUN_IN_SECONDS = 5;

function closedGoals({ acceptedPerSecond, deliveredPerSecond, ...phase }: Phase): Goal[] {
  return [
    { name: 'closed loop: accepted', unit: '/s', atLeast: 3_000, measured: acceptedPerSecond },
    { name: 'closed loop: delivered', unit: '/s', atLeast: 3_000, measured: deliveredPerSecond },
    atMost('closed loop: accept p99', 50, phase.acceptMs.p99),
    atMost('closed loop: end to end p99', 80, phase.endToEndMs.p99),
    cpu('closed loop', 0.5, phase.cpuSecondsPer1000),
  ];
}

function openGoals({ name, acceptMs, endToEndMs, cpuSecondsPer1000 }: Phase): Goal[] {
  return [
    atMost(`${name}: accept p50`, 8, acceptMs.p50),
    atMost(`${name}: accept p99`, 20, acceptMs.p99),
    atMost(`${name}: end to end p50`, 10, endToEndMs.p50),
    atMost(`${name}: end to end p99`, 25, endToEndMs.p99),
    cpu(name, 1.6, cpuSecondsPer1000),
  ];
}

function highGoals({ name, endToEndMs }: Phase): Goal[] {
  return [
    atMost(`${name}: end to end p50`, 13, endToEndMs.p50),
    atMost(`${name}: end to end p99`, 60, endToEndMs.p99),
  ];
}

function atMost(name: string, limitMs: number, measured: number | null): Goal {
  return { name, unit: 'ms', atMost: limitMs, measured };
}

function cpu(phase: string, atMostSeconds: number, measured: number | null): Goal {
  const name = `${phase}: CPU of Posthorn and its stores per 1,000 messages`;
  return { name, unit: 's', atMost: atMostSeconds, measured };
}
