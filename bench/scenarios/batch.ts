import { requiredAt } from '@posthorn/domain/required.ts';
import { createGatewayClient } from '../load/gateway-client.ts';
import { type BatchLoad, closedBatches, closedLoop, type Load, openLoop } from '../load/loops.ts';
import { startReceivers } from '../load/receivers.ts';
import { rounded } from '../measure/figures.ts';
import type { Phase } from '../measure/phase.ts';
import type { Goal } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './warm-up.ts';

export const batch = defineScenario({
  summary: 'batches beside single messages: cost of a message, and the latency of single ones',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of each phase' },
    size: { default: 100, meaning: 'messages of a batch' },
    clients: { default: 8, meaning: 'clients that send batches at once, in a closed loop' },
    rate: { default: 200, meaning: 'single messages per second of another company' },
    'batch-rate': { default: 5, meaning: 'batches per second beside them' },
  },
  async run(bench, options) {
    const { warmup, endpoints, seconds, size, clients, rate, 'batch-rate': batchRate } = options;
    const { webhookIds } = await bench.openTargets({ count: endpoints });
    const idOf = (endpoint: number): string => requiredAt(webhookIds, endpoint, 'webhook');
    const { client, signal } = bench;
    const singles: Load = {
      send: (endpoint) => client.sendToWebhook(idOf(endpoint)),
      endpoints,
      signal,
    };
    const batches: BatchLoad = {
      sendBatch: (targets) => client.sendBatch(targets.map(idOf)),
      size,
      endpoints,
      signal,
    };
    await warmUp(bench, singles, { warmup });
    await closedBatches(batches, { connections: clients, seconds: warmup / 2 });
    const single = await bench.measure({
      name: `single messages, closed loop of ${CONNECTIONS}`,
      load: () => closedLoop(singles, { connections: CONNECTIONS, seconds }),
    });
    const many = await bench.measure({
      name: `batches of ${size}, closed loop of ${clients}`,
      load: () => closedBatches(batches, { connections: clients, seconds }),
    });
    const other = await openOther(bench);
    const beside = { connections: 1, seconds: seconds + 2, everyMs: 1_000 / batchRate };
    try {
      const alone = await bench.measure({
        name: `single messages of another company, ${rate}/s, alone`,
        load: () => openLoop(other.load, { ratePerSecond: rate, seconds }),
      });
      const busy = await bench.measure({
        name: `the same beside ${batchRate} batches of ${size} per second`,
        load: async () => {
          const running = closedBatches(batches, beside);
          const record = await openLoop(other.load, { ratePerSecond: rate, seconds });
          await running;
          return record;
        },
      });
      return {
        phases: [single, many, alone, busy],
        goals: [...costGoals(single, many), latencyGoal(alone, busy)],
      };
    } finally {
      await other.close();
    }
  },
});

/** Another company with an endpoint of its own. */
async function openOther(bench: Bench): Promise<{ load: Load; close: () => Promise<void> }> {
  const client = createGatewayClient(await bench.stack.createCompany('other'));
  const { signal, arrivals } = bench;
  const receivers = await startReceivers({
    endpoints: 1,
    servers: 1,
    behaviourOf: () => 'answers',
    note: arrivals.note,
  });
  const [webhookId = ''] = await client.createWebhooks(await client.createApp(), receivers.urls);
  return {
    load: { send: () => client.sendToWebhook(webhookId), endpoints: 1, signal },
    close() {
      receivers.close();
      return client.close();
    },
  };
}

function costGoals(single: Phase, many: Phase): Goal[] {
  const gateway = ({ parts }: Phase) => parts.gateway?.cpuSecondsPer1000 ?? null;
  return [
    {
      name: 'CPU of the gateway for a message, batch ÷ single',
      unit: '×',
      atMost: 0.25,
      measured: ratio(gateway(many), gateway(single)),
    },
    {
      name: 'CPU of all parts for a message, batch ÷ single',
      unit: '×',
      atMost: 0.5,
      measured: ratio(many.cpuSecondsPer1000, single.cpuSecondsPer1000),
    },
    {
      name: 'delivered/s, batch ÷ single',
      unit: '×',
      atLeast: 1.8,
      measured: ratio(many.deliveredPerSecond, single.deliveredPerSecond),
    },
  ];
}

function latencyGoal(alone: Phase, busy: Phase): Goal {
  return {
    name: 'accept p99 of single messages, beside batches ÷ alone',
    unit: '×',
    atMost: 1.5,
    measured: ratio(busy.acceptMs.p99, alone.acceptMs.p99),
  };
}

function ratio(one: number | null, other: number | null): number | null {
  return one === null || other === null || other === 0 ? null : rounded(one / other, 2);
}
