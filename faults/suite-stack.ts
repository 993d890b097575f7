import { rmSync } from 'node:fs';
import { logIfSlow } from '../tools/local-stack/waiting.ts';
import { findingsOfEnds } from './audit/ends.ts';
import type { Command } from './command-line.ts';
import type { Result } from './report/result.ts';
import { logsPathOf, writeResult } from './report/write-result.ts';
import { STOP_WITHIN_MS } from './run-round.ts';
import type { Fleet } from './stack/fleet.ts';
import type { Layout } from './stack/layout.ts';
import type { FaultStack, StackFolder } from './stack/start-stack.ts';

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

export interface SuiteStack extends StackInUse {
  folder: StackFolder;
  /** Kept for the next round when it has the same layout. */
  stack?: FaultStack | undefined;
}

export async function stackFor(suite: SuiteStack, layout: Layout): Promise<FaultStack> {
  const isSame = JSON.stringify(suite.stack?.layout) === JSON.stringify(layout);
  if (suite.stack && isSame) return suite.stack;
  await endStack(suite);
  const starting = suite.folder.start(layout);
  suite.stack = await logIfSlow(
    suite.log,
    'Starting the stores and two processes of each service …',
    starting,
  );
  return suite.stack;
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
export async function abandonStack(
  suite: StackInUse,
  base: Pick<Result, 'round' | 'startedAt'>,
): Promise<void> {
  if (suite.stack) suite.folder.copyLogs(logsPathOf(suite.command.resultsPath, base));
  suite.stack = undefined;
  suite.usedBy = undefined;
  await suite.folder.stop();
}

/** Copies the logs of the stack, while there is one. */
export function keepLogs(
  { command, stack, folder, log }: StackInUse,
  result: Pick<Result, 'round' | 'startedAt'>,
): void {
  if (!stack) return;
  const path = logsPathOf(command.resultsPath, result);
  rmSync(path, { recursive: true, force: true });
  folder.copyLogs(path);
  log(`The logs of this round are in ${path}`);
}
