import { createArrivals } from './load/arrivals.ts';
import { createGatewayClient } from './load/gateway-client.ts';
import { startReceivers } from './load/receivers.ts';
import { createPhases } from './measure/measure-phase.ts';
import type { Bench, Targets, WantedEndpoints } from './scenario.ts';
import type { BenchStack } from './stack/start-stack.ts';
import { watchUsage } from './usage/watch-usage.ts';

interface BenchDeps {
  stack: BenchStack;
  signal: AbortSignal;
  log: (line: string) => void;
}

export interface OpenBench {
  bench: Bench;
  close: () => Promise<void>;
}

export function createBench({ stack, signal, log }: BenchDeps): OpenBench {
  const client = createGatewayClient(stack.credentials);
  const arrivals = createArrivals(() => performance.now());
  const usage = watchUsage(stack.processes, stack.stackDir);
  const closers: (() => void)[] = [];

  async function open(wanted: WantedEndpoints): Promise<Targets> {
    const { count, ports = count, behaviourOf = () => 'answers', note = arrivals.note } = wanted;
    const receivers = await startReceivers({ endpoints: count, ports, behaviourOf, note });
    closers.push(receivers.close);
    const appId = await client.createApp();
    const webhookIds = await client.createWebhooks(appId, receivers.urls, wanted.enough);
    return { appId, webhookIds };
  }

  const bench: Bench = {
    stack,
    client,
    arrivals,
    usage,
    signal,
    log,
    measure: createPhases({ arrivals, usage, signal, log }),
    openEndpoints: async (wanted) => {
      const { webhookIds } = await open(wanted);
      return { send: client.sendToWebhook, webhookIds, signal };
    },
    openTargets: open,
  };
  const close = async (): Promise<void> => {
    usage.stop();
    for (const closeOne of closers) closeOne();
    await client.close();
  };
  return { bench, close };
}
