import { type Load, openLoop } from '../load/loops.ts';
import type { Goal } from '../report/report.ts';
import type { Phase } from '../measure/phase.ts';
import { rounded } from '../measure/figures.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { LOAD_OPTIONS, warmUp } from './warm-up.ts';

export const isolation = defineScenario({
  summary: 'healthy endpoints beside endpoints that hang for 15 s',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 300, meaning: 'seconds with hanging endpoints' },
    baseline: { default: 60, meaning: 'seconds without them, measured first' },
    rate: { default: 650, meaning: 'messages per second of all endpoints together' },
    hanging: { default: 5, meaning: 'percent of the traffic that goes to hanging endpoints' },
  },
  async run(bench, { warmup, endpoints, seconds, baseline, rate, hanging }) {
    const hangingCount = Math.max(1, Math.round((endpoints * hanging) / 100));
    const healthyCount = endpoints - hangingCount;
    if (healthyCount < 1) throw new Error('No healthy endpoint is left: lower --hanging.');
    const { healthy, mixed } = await open(bench, endpoints, healthyCount);
    await warmUp(bench, healthy, { warmup });
    // The healthy endpoints get the same rate in both phases: the hanging ones are the only difference.
    const healthyRate = (rate * healthyCount) / endpoints;
    const without = await bench.measure({
      name: `healthy endpoints alone, ${rounded(healthyRate)}/s`,
      load: () => openLoop(healthy, { ratePerSecond: healthyRate, seconds: baseline }),
    });
    const beside = await bench.measure({
      name: `the same beside ${rounded((100 * hangingCount) / endpoints)} % to hanging ones`,
      isCounted: (endpoint) => endpoint < healthyCount,
      load: () => openLoop(mixed, { ratePerSecond: rate, seconds }),
    });
    return { phases: [without, beside], goals: goalsOf(without, beside, healthyRate) };
  },
});

/** The last endpoints hang. Each gets the same share of the traffic as a healthy one. */
async function open(bench: Bench, endpoints: number, healthyCount: number) {
  const mixed = await bench.openEndpoints({
    count: endpoints,
    behaviourOf: (endpoint) => (endpoint < healthyCount ? 'answers' : 'hangs'),
  });
  const healthy: Load = { ...mixed, endpoints: healthyCount };
  return { healthy, mixed };
}

function goalsOf(without: Phase, beside: Phase, healthyRate: number): Goal[] {
  const [p99, p99Beside] = [without.endToEndMs.p99, beside.endToEndMs.p99];
  const ratio = p99 === null || p99Beside === null ? null : rounded(p99Beside / p99, 2);
  return [
    { name: 'healthy end to end p99, with ÷ without', unit: '×', atMost: 2, measured: ratio },
    {
      name: 'healthy deliveries per second, of those sent',
      unit: '%',
      atLeast: 99,
      measured: rounded((100 * beside.deliveredPerSecond) / healthyRate, 2),
    },
  ];
}
