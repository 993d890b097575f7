import { once } from 'node:events';
import type { Command } from './command-line.ts';
import { createBench } from './create-bench.ts';
import { judge } from './figures/goals.ts';
import { PROFILE_FLAGS, printProfiles } from './report/print-profiles.ts';
import { printReport } from './report/print-report.ts';
import { isComplete, type Report } from './report/report.ts';
import { describe, writeReport } from './report/write-report.ts';
import type { ScenarioResult } from './scenario.ts';
import { describeMachine } from '../tools/local-stack/machine/describe-machine.ts';
import { type BenchStack, startStack } from './stack/start-stack.ts';

function log(line: string): void {
  console.log(line);
}

/**
 * Starts the stack, runs the scenario, reports, and stops the stack. Returns false when a message is
 * missing or was refused.
 */
export async function runScenario(command: Command, signal: AbortSignal): Promise<boolean> {
  const { serviceFlags: ownFlags = [] } = command.scenario;
  const serviceFlags = command.isProfiling ? [...ownFlags, ...PROFILE_FLAGS] : ownFlags;
  const interrupted = once(signal, 'abort');
  const isLimited = command.scenario.isLimited === true;
  const stack = await startStack({ serviceFlags, isLimited, log });
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
