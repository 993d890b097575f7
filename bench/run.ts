import { once } from 'node:events';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { Scenario, Bench, Targets, WantedEndpoints, ScenarioResult } from './scenario.ts';
import { batch } from './scenarios/batch.ts';
import { deliver } from './scenarios/deliver.ts';
import { greedy } from './scenarios/greedy/greedy.ts';
import { hold } from './scenarios/hold.ts';
import { ingest } from './scenarios/ingest.ts';
import { isolation } from './scenarios/isolation.ts';
import { manyEndpoints } from './scenarios/many-endpoints.ts';
import { origins } from './scenarios/origins.ts';
import { overload } from './scenarios/overload/overload.ts';
import { population } from './scenarios/population/population.ts';
import { retry } from './scenarios/retry/retry.ts';
import { createArrivals } from './load/arrivals.ts';
import { createGatewayClient } from './load/gateway-client.ts';
import { startReceivers } from './load/receivers.ts';
import { createPhases } from './measure/phase.ts';
import { type BenchStack, startStack } from './stack/start-stack.ts';
import { watchUsage } from './measure/watch-usage.ts';
import { type Command, CommandLineError, helpOf, readCommand } from './command-line.ts';
import {
  judge,
  printReport,
  isComplete,
  type Report,
  describe,
  writeReport,
} from './report/report.ts';
import { PROFILE_FLAGS, printProfiles } from './report/profiles.ts';
import { describeMachine } from '../tools/local-stack/machine/describe-machine.ts';
import { runUntilStopped } from '../tools/local-stack/waiting.ts';

const SCENARIOS: Record<string, Scenario> = {
  batch,
  deliver,
  greedy,
  hold,
  ingest,
  isolation,
  'many-endpoints': manyEndpoints,
  origins,
  overload,
  population,
  retry,
};

interface BenchDeps {
  stack: BenchStack;
  signal: AbortSignal;
  log: (line: string) => void;
}

interface OpenBench {
  bench: Bench;
  close: () => Promise<void>;
}

function createBench({ stack, signal, log }: BenchDeps): OpenBench {
  const client = createGatewayClient(stack.credentials);
  const arrivals = createArrivals(() => performance.now());
  const usage = watchUsage(stack.processes, stack.stackDir);
  const closers: (() => void)[] = [];

  async function open(wanted: WantedEndpoints): Promise<Targets> {
    const { count, ports = count, behaviourOf = () => 'answers', note = arrivals.note } = wanted;
    const receivers = await startReceivers({ endpoints: count, servers: ports, behaviourOf, note });
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
      return {
        send: (endpoint) => client.sendToWebhook(requiredAt(webhookIds, endpoint, 'webhook')),
        endpoints: webhookIds.length,
        signal,
      };
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

function log(line: string): void {
  console.log(line);
}

/**
 * Starts the stack, runs the scenario, reports, and stops the stack. Returns false when a message is
 * missing or was refused.
 */
async function runScenario(command: Command, signal: AbortSignal): Promise<boolean> {
  const { serviceFlags: ownFlags = [] } = command.scenario;
  const serviceFlags = command.isProfiling ? [...ownFlags, ...PROFILE_FLAGS] : ownFlags;
  Object.assign(process.env, command.scenario.environment?.());
  const interrupted = once(signal, 'abort');
  const isLimited = command.scenario.isLimited === true;
  const stack = await startStack({
    serviceFlags,
    isLimited,
    keepsStores: command.keepsStores,
    ingests: command.scenario.ingests === true,
    processesOf: (service) => command.scenario.processesOf?.(service, command.values) ?? 1,
    log,
  });
  const working = runAndReport(command, stack.started, signal);
  try {
    await Promise.race([working, stack.died, interrupted]);
  } finally {
    log('Stopping the stack …');
    await stack.stop();
  }
  if (signal.aborted) return false;
  // Only now: the services write their profiles when they exit.
  const { report, processes } = await working;
  if (command.isProfiling) printProfiles(processes);
  return report.isComplete;
}

async function runAndReport(
  { name, scenario, values }: Command,
  started: Promise<BenchStack>,
  signal: AbortSignal,
) {
  const stack = await started;
  const startedAt = new Date().toISOString();
  const machine = await describeMachine(stack.addresses);
  log(describe(machine));
  const { bench, close } = createBench({ stack, signal, log });
  const outcome = await runClosing(() => scenario.run(bench, values), close);
  const report: Report = {
    scenario: name,
    startedAt,
    machine,
    options: values,
    ...judged(outcome),
  };
  if (!signal.aborted) publish(report);
  return { report, processes: stack.processes };
}

async function runClosing<T>(run: () => Promise<T>, close: () => Promise<void>): Promise<T> {
  try {
    return await run();
  } finally {
    await close();
  }
}

function judged({ goals, tables = [], extra = {}, ...outcome }: ScenarioResult) {
  return {
    phases: outcome.phases,
    goals: goals.map(judge),
    tables,
    extra,
    isComplete: isComplete(outcome.phases) && (outcome.isComplete ?? true),
  };
}

function publish(report: Report): void {
  printReport(report);
  log(`Written: bench/results/${writeReport(report)}.json`);
}

function readArguments(): Command | null {
  try {
    return readCommand(process.argv.slice(2), SCENARIOS);
  } catch (error) {
    if (!(error instanceof CommandLineError)) throw error;
    console.error(`${error.message}\n\n${helpOf(SCENARIOS)}`);
    return process.exit(1);
  }
}

const command = readArguments();
if (command === null) console.log(helpOf(SCENARIOS));
else await runUntilStopped((signal) => runScenario(command, signal));
