import { once } from 'node:events';
import { join } from 'node:path';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { Bench, Endpoints, Scenario, WantedEndpoints } from './scenario.ts';
import { acceptance } from './scenarios/acceptance.ts';
import { batch, deliver, ingest, isolation, manyEndpoints } from './scenarios/flows.ts';
import { greedy } from './scenarios/greedy/greedy.ts';
import { disabled, wide } from './scenarios/greedy/wide-app.ts';
import { hold } from './scenarios/hold.ts';
import { filters } from './scenarios/filters.ts';
import { order } from './scenarios/order.ts';
import { origins } from './scenarios/origins.ts';
import { overload } from './scenarios/overload/overload.ts';
import { population } from './scenarios/population.ts';
import { retry } from './scenarios/retry.ts';
import { createArrivals } from './load/arrivals.ts';
import { createGatewayClient } from './load/gateway-client.ts';
import { startReceivers } from './load/receivers.ts';
import { createPhases } from './measure/phase.ts';
import { type BenchStack, startStack } from './stack/start-stack.ts';
import { watchUsage } from './measure/watch-usage.ts';
import { type Command, CommandLineError, helpOf, readCommand } from './command-line.ts';
import {
  describe,
  isComplete,
  judge,
  printReport,
  type Report,
  RESULTS,
  writeReport,
} from './report/report.ts';
import { describeMachine } from '../tools/local-stack/machine/describe-machine.ts';
import { runUntilStopped } from '../tools/local-stack/waiting.ts';

const SCENARIOS: Record<string, Scenario> = {
  acceptance,
  batch,
  deliver,
  disabled,
  filters,
  greedy,
  hold,
  ingest,
  isolation,
  'many-endpoints': manyEndpoints,
  order,
  origins,
  overload,
  population,
  retry,
  wide,
};

interface BenchDeps {
  stack: BenchStack;
  signal: AbortSignal;
  log: (line: string) => void;
}

/** Also returns what closes it. */
function createBench({ stack, signal, log }: BenchDeps): [Bench, () => Promise<void>] {
  const client = createGatewayClient(stack.credentials);
  const arrivals = createArrivals(() => performance.now());
  const usage = watchUsage(stack.processes, stack.stackDir);
  const closers = [usage.stop];

  async function openEndpoints(wanted: WantedEndpoints): Promise<Endpoints> {
    const { count, ports = count, behaviourOf = () => 'answers', note = arrivals.note } = wanted;
    const by = wanted.client ?? client;
    const receivers = await startReceivers({ endpoints: count, servers: ports, behaviourOf, note });
    closers.push(receivers.close);
    const appId = wanted.appId ?? (await by.createApp());
    const webhookIds = await by.createWebhooks(
      appId,
      receivers.urls,
      wanted.enough,
      wanted.fieldsOf,
    );
    const idOf = (endpoint: number): string => requiredAt(webhookIds, endpoint, 'webhook');
    const all = { endpoints: webhookIds.length, signal };
    return {
      appId,
      webhookIds,
      load: { send: (endpoint) => by.sendToWebhook(idOf(endpoint)), ...all },
      batchesOf: (size) => ({
        sendBatch: (targets) => by.sendBatch(targets.map(idOf)),
        size,
        ...all,
      }),
    };
  }

  const measure = createPhases({ arrivals, usage, signal, log });
  const close = async (): Promise<void> => {
    for (const closeOne of closers) closeOne();
    await client.close();
  };
  return [{ stack, client, arrivals, usage, signal, log, measure, openEndpoints }, close];
}

const log = console.log.bind(console) as (line: string) => void;

/** The profiles cover the whole run, start and warm-up included. */
const PROFILE_FLAGS = ['--cpu-prof', `--cpu-prof-dir=${join(RESULTS, 'profiles')}`];

/**
 * Starts the stack, runs the scenario, reports, and stops the stack. Returns false when a message is
 * missing or was refused.
 */
async function runScenario(command: Command, signal: AbortSignal): Promise<boolean> {
  const { scenario, values, isProfiling, keepsStores } = command;
  const { serviceFlags = [], isLimited = false, ingests = false } = scenario;
  Object.assign(process.env, scenario.environment?.());
  const interrupted = once(signal, 'abort');
  const stack = await startStack({
    serviceFlags: isProfiling ? [...serviceFlags, ...PROFILE_FLAGS] : serviceFlags,
    isLimited,
    keepsStores,
    ingests,
    processesOf: (service) => scenario.processesOf?.(service, values) ?? 1,
    log,
  });
  const working = runAndReport(command, stack.started, signal);
  try {
    await Promise.race([working, stack.died, interrupted]);
  } finally {
    log('Stopping the stack …');
    await stack.stop();
  }
  return !signal.aborted && (await working).isComplete;
}

async function runAndReport(
  { name, scenario, values }: Command,
  started: Promise<BenchStack>,
  signal: AbortSignal,
): Promise<Report> {
  const stack = await started;
  const startedAt = new Date().toISOString();
  const machine = await describeMachine(stack.addresses);
  log(describe(machine));
  const [bench, close] = createBench({ stack, signal, log });
  try {
    const { phases, goals, ...rest } = await scenario.run(bench, values);
    const report: Report = {
      scenario: name,
      startedAt,
      machine,
      options: values,
      phases,
      tables: [],
      extra: {},
      ...rest,
      goals: goals.map(judge),
      isComplete: isComplete(phases) && (rest.isComplete ?? true),
    };
    if (signal.aborted) return report;
    printReport(report);
    log(`Written: bench/results/${writeReport(report)}.json`);
    return report;
  } finally {
    await close();
  }
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
