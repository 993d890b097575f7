import { rmSync } from 'node:fs';
import type { Finding } from './audit/finding.ts';
import type { Command } from './command-line.ts';
import type { AnyRound, LoneRound, Round } from './round.ts';
import { runRound, STOP_WITHIN_MS } from './run-round.ts';
import { printResults } from './report/print-results.ts';
import { isSound, type Result } from './report/result.ts';
import { logsPathOf, writeAll, writeResult } from './report/write-result.ts';
import { type Layout, USUAL_LAYOUT } from './stack/layout.ts';
import { type FaultStack, openStackFolder, type StackFolder } from './stack/start-stack.ts';
import { logIfSlow } from '../tools/local-stack/waiting.ts';

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
    await runAll({ command, signal, folder, results });
  } finally {
    signal.removeEventListener('abort', stop);
    await logIfSlow(log, 'Stopping the stack …', folder.close());
    printResults(results);
    if (command.jsonPath !== undefined) writeAll(command.jsonPath, results);
  }
  return results.every(isSound);
}

interface Suite {
  command: Command;
  signal: AbortSignal;
  folder: StackFolder;
  results: Result[];
  /** Kept for the next round when it has the same layout. */
  stack?: FaultStack | undefined;
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
    const { rate, against, hasSigterm } = command;
    const seed = command.seed + results.length;
    const ran = await runRound({
      round,
      stack,
      seconds,
      rate,
      repetition,
      seed,
      against,
      hasSigterm,
      signal,
    });
    const late = stack.receiver.takeLate();
    const findings = [...ran.verdict.findings, ...lateFinding(late)];
    if (round.spoilsStack) {
      // While there is a stack: its logs go with it.
      if (findings.length > 0) keepLogs(suite, base);
      findings.push(...(await endStack(suite)));
    }
    return { kind: 'audited', ...ran, verdict: { ...ran.verdict, findings } };
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

async function stackFor(suite: Suite, layout: Layout): Promise<FaultStack> {
  const isSame = JSON.stringify(suite.stack?.layout) === JSON.stringify(layout);
  if (suite.stack && isSame) return suite.stack;
  await endStack(suite);
  const starting = suite.folder.start(layout);
  suite.stack = await logIfSlow(
    log,
    'Starting the stores and two processes of each service …',
    starting,
  );
  return suite.stack;
}

/** Stops every service in order, and the stores; returns what went wrong, and adds it to the last result. */
async function endStack(suite: Suite): Promise<Finding[]> {
  const { stack, folder, results } = suite;
  if (!stack) return [];
  suite.stack = undefined;
  const { fleet } = stack;
  await Promise.all(fleet.running().map((member) => fleet.stop(member)));
  const wrong = fleet
    .takeEnds()
    .stops.filter(({ exit, tookMs }) => exit !== 'exit code 0' || tookMs > STOP_WITHIN_MS)
    .map(
      ({ service, exit, tookMs }) => `${service} ended with ${exit} after ${Math.round(tookMs)} ms`,
    );
  const findings =
    wrong.length === 0 ? [] : [{ what: 'a stop went wrong', count: wrong.length, examples: wrong }];
  const last = results.at(-1);
  if (last?.kind === 'audited' && findings.length > 0) {
    last.verdict.findings.push(...findings);
    keepLogs(suite, last);
  }
  await folder.stop();
  return findings;
}

async function abandonStack(
  suite: Suite,
  base: { round: string; startedAt: string },
): Promise<void> {
  if (suite.stack) suite.folder.copyLogs(logsPathOf(suite.command.resultsPath, base));
  suite.stack = undefined;
  await suite.folder.stop();
}

function keepLogs(
  { command, stack, folder }: Suite,
  result: Pick<Result, 'round' | 'startedAt'>,
): void {
  if (!stack) return;
  const path = logsPathOf(command.resultsPath, result);
  rmSync(path, { recursive: true, force: true });
  folder.copyLogs(path);
  log(`The logs of this round are in ${path}`);
}
