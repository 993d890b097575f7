import { rmSync } from 'node:fs';
import type { Finding } from './audit/evidence.ts';
import type { Command } from './command-line.ts';
import type { AnyRound, LoneRound, Round } from './round.ts';
import { runRound, STOP_WITHIN_MS } from './run-round.ts';
import { printResults, isSound, type Result, writeAll, writeResult, logsPathOf } from './report.ts';
import { USUAL_LAYOUT, type Layout, type Fleet } from './stack/fleet.ts';
import { openStackFolder, type FaultStack, type StackFolder } from './stack/start-stack.ts';
import { logIfSlow } from '../tools/local-stack/waiting.ts';
import { findingsOfEnds } from './audit/audit.ts';

function log(line: string): void {
  console.log(line);
}

/** Runs all rounds, prints and writes their results. Returns true when nothing is wrong. */
export async function runSuite(command: Command, signal: AbortSignal): Promise<boolean> {
  const results: Result[] = [];
  const folder = await openStackFolder(log);
  // A round waits for stores and services that may never answer: stopping them ends the wait.
  const stop = (): void => void folder.stop().catch(() => undefined);
  signal.addEventListener('abort', stop);
  try {
    await runAll({ command, signal, folder, results, log });
  } finally {
    signal.removeEventListener('abort', stop);
    await logIfSlow(log, 'Stopping the stack …', folder.close());
    printResults(results);
    if (command.jsonPath !== undefined) writeAll(command.jsonPath, results);
  }
  return results.every(isSound);
}

interface Suite extends SuiteStack {
  command: Command;
  results: Result[];
}

async function runAll(suite: Suite): Promise<void> {
  const { command, signal } = suite;
  for (const round of command.rounds) {
    const lengths = command.seconds === undefined ? round.seconds : [command.seconds];
    for (const seconds of lengths) {
      for (let repetition = 0; repetition < command.repetitions; repetition += 1) {
        signal.throwIfAborted();
        await runOne(suite, round, { seconds, repetition });
      }
    }
  }
  await endStack(suite);
}

interface Turn {
  seconds: number;
  repetition: number;
}

async function runOne(suite: Suite, round: AnyRound, turn: Turn): Promise<void> {
  const result =
    'runAlone' in round ? await runLone(suite, round, turn) : await runOnStack(suite, round, turn);
  suite.results.push(result);
  if (!isSound(result)) keepLogs(suite, result);
  writeResult(suite.command.resultsPath, result);
  printResults([result]);
}

async function runLone(
  { signal }: Suite,
  round: LoneRound,
  { seconds, repetition }: Turn,
): Promise<Result> {
  const startedAt = new Date().toISOString();
  log(`${round.name} ${repetition + 1}: ${round.summary}`);
  const wrong = await round.runAlone({ seconds, signal, log });
  const findings = wrong.map((what) => ({ what, count: 1, examples: [] }));
  return { kind: 'lone', round: round.name, repetition, seconds, startedAt, findings };
}

async function runOnStack(suite: Suite, round: Round, turn: Turn): Promise<Result> {
  const { command, signal, results } = suite;
  const { seconds, repetition } = turn;
  const startedAt = new Date().toISOString();
  const base = { round: round.name, repetition, seconds, startedAt };
  try {
    const stack = await stackFor(suite, round.layout ?? USUAL_LAYOUT);
    log(`${round.name} ${repetition + 1}: ${round.summary} (${seconds} s)`);
    const { rate, records, against, hasSigterm } = command;
    const seed = command.seed + results.length;
    const ran = await runRound({
      round,
      stack,
      seconds,
      rate,
      repetition,
      seed,
      records,
      against,
      hasSigterm,
      signal,
    });
    const late = stack.receiver.takeLate();
    const findings = [...ran.verdict.findings, ...lateFinding(late)];
    const result = { kind: 'audited', ...ran, verdict: { ...ran.verdict, findings } } as const;
    suite.usedBy = result;
    if (round.spoilsStack) {
      // While there is a stack: its logs go with it.
      if (!isSound(result)) keepLogs(suite, result);
      await endStack(suite);
    }
    return result;
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    await abandonStack(suite, base);
    return { kind: 'broken off', ...base, reason };
  }
}

/** Requests that came after the audit of their round. */
function lateFinding(count: number): Finding[] {
  return count === 0 ? [] : [{ what: 'received after its round had ended', count, examples: [] }];
}

/** The stack of a suite, as it is kept for the next round and ended. */
interface StackInUse {
  command: Pick<Command, 'resultsPath'>;
  signal: AbortSignal;
  folder: Pick<StackFolder, 'stop' | 'copyLogs'>;
  log: (line: string) => void;
  stack?: { fleet: Pick<Fleet, 'running' | 'stop' | 'takeEnds'> } | undefined;
  /** The last result that used the stack. A later one may be of a round without a stack. */
  usedBy?: Extract<Result, { kind: 'audited' }> | undefined;
}

interface SuiteStack extends StackInUse {
  folder: StackFolder;
  /** Kept for the next round when it has the same layout. */
  stack?: FaultStack | undefined;
}

async function stackFor(suite: SuiteStack, layout: Layout): Promise<FaultStack> {
  if (suite.stack && serves(suite.stack.layout, layout)) return suite.stack;
  await endStack(suite);
  const starting = suite.folder.start(layout);
  suite.stack = await logIfSlow(
    suite.log,
    'Starting the stores and two processes of each service …',
    starting,
  );
  return suite.stack;
}

/** A clock that can be set stands for one that is right. */
function serves(present: Layout, wanted: Layout): boolean {
  const { hasOwnClocks } = present;
  const asPresent = { ...wanted, hasOwnClocks: wanted.hasOwnClocks || hasOwnClocks };
  return JSON.stringify(present) === JSON.stringify(asPresent);
}

/**
 * Stops every service in order, and the stores. What went wrong since the last audit is added to the last result that
 * used the stack, which is written again.
 */
export async function endStack(suite: StackInUse): Promise<void> {
  const { stack, usedBy, folder, command, signal } = suite;
  if (!stack) return;
  const { fleet } = stack;
  await Promise.all(fleet.running().map((member) => fleet.stop(member)));
  // Services that Ctrl-C has ended say nothing about the round.
  signal.throwIfAborted();
  const findings = findingsOfEnds(fleet.takeEnds(), STOP_WITHIN_MS);
  if (usedBy && findings.length > 0) {
    usedBy.verdict.findings.push(...findings);
    keepLogs(suite, usedBy);
    writeResult(command.resultsPath, usedBy);
  }
  suite.stack = undefined;
  suite.usedBy = undefined;
  await folder.stop();
}

/** Ends everything at once. The result that used the stack before says nothing about a round that was broken off. */
async function abandonStack(
  suite: StackInUse,
  base: Pick<Result, 'round' | 'startedAt'>,
): Promise<void> {
  if (suite.stack) suite.folder.copyLogs(logsPathOf(suite.command.resultsPath, base));
  suite.stack = undefined;
  suite.usedBy = undefined;
  await suite.folder.stop();
}

/** Copies the logs of the stack, while there is one. */
function keepLogs(
  { command, stack, folder, log }: StackInUse,
  result: Pick<Result, 'round' | 'startedAt'>,
): void {
  if (!stack) return;
  const path = logsPathOf(command.resultsPath, result);
  rmSync(path, { recursive: true, force: true });
  folder.copyLogs(path);
  log(`The logs of this round are in ${path}`);
}
