import type { Finding } from './audit/finding.ts';
import type { Command } from './command-line.ts';
import type { AnyRound, LoneRound, Round } from './round.ts';
import { runRound } from './run-round.ts';
import { printResults } from './report/print-results.ts';
import { isSound, type Result } from './report/result.ts';
import { writeAll, writeResult } from './report/write-result.ts';
import { USUAL_LAYOUT } from './stack/layout.ts';
import { openStackFolder } from './stack/start-stack.ts';
import { abandonStack, endStack, keepLogs, stackFor, type SuiteStack } from './suite-stack.ts';
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
