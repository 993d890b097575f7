import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Verdict } from './audit/audit.ts';
import type { Finding } from './audit/evidence.ts';
import { describeHost, type Host } from '../tools/local-stack/machine/describe-machine.ts';

interface Base {
  round: string;
  repetition: number;
  seconds: number;
  startedAt: string;
}

/** One run of a round, as it is reported. */
export interface RoundResult extends Base {
  rate: number;
  seed: number;
  verdict: Verdict;
  /** The reports of the fault. */
  notes: readonly string[];
}

/** The result of one run of a round. */
export type Result =
  | (RoundResult & { kind: 'audited' })
  /** A round without a stack. */
  | (Base & { kind: 'lone'; findings: Finding[] })
  /** The round could not be run to its end. */
  | (Base & { kind: 'broken off'; reason: string });

export function findingsOf(result: Result): Finding[] {
  switch (result.kind) {
    case 'audited':
      return result.verdict.findings;
    case 'lone':
      return result.findings;
    case 'broken off':
      return [{ what: 'broken off', count: 1, examples: [result.reason] }];
  }
}

export function isSound(result: Result): boolean {
  return findingsOf(result).length === 0;
}

/** The folder of the results. Git ignores it; the newest figures are rows of docs/reliability.md. */
export const RESULTS = join(import.meta.dirname, 'results');

type Named = Pick<Result, 'round' | 'startedAt'>;

/** The content of ROUND-TIME.json. */
export interface WrittenResult {
  machine: Host;
  result: Result;
}

export function writeResult(folder: string, result: Result): void {
  mkdirSync(folder, { recursive: true });
  const written: WrittenResult = { machine: describeHost(), result };
  writeFileSync(join(folder, `${nameOf(result)}.json`), `${JSON.stringify(written, null, 1)}\n`);
}

export function writeAll(path: string, results: readonly Result[]): void {
  writeFileSync(path, `${JSON.stringify(results, null, 1)}\n`);
}

/** The folder of the logs of a round that went wrong. */
export function logsPathOf(folder: string, result: Named): string {
  return join(folder, `${nameOf(result)}-logs`);
}

function nameOf({ round, startedAt }: Named): string {
  return `${round}-${startedAt.slice(0, 19).replaceAll(':', '')}`;
}

/** Prints one line for each run, and the findings below. */
export function printResults(results: readonly Result[]): void {
  if (results.length === 0) return;
  console.log();
  console.table(results.map(rowOf));
  for (const result of results) {
    if (result.kind === 'audited') console.log(`${result.round}: ${result.notes.join('; ')}`);
    for (const { what, count, examples } of findingsOf(result)) {
      const shown = examples.length === 0 ? '' : `\n    ${examples.join('\n    ')}`;
      console.log(`${result.round} ${result.repetition + 1}: ${what} (${count})${shown}`);
    }
  }
}

export function rowOf(result: Result): Record<string, string | number> {
  const name = `${result.round} ${result.repetition + 1} (${result.seconds} s)`;
  const verdict = isSound(result) ? 'good' : 'WRONG';
  if (result.kind !== 'audited') return { round: name, verdict };
  const { accepted, unknown, unknownArrived, ...rest } = result.verdict;
  const { delivered, deliveries, exhausted, lost, earlyRetries } = rest;
  return {
    round: name,
    verdict,
    accepted,
    'not sent': rest.notSent,
    deliveries,
    delivered,
    exhausted,
    'records published': rest.records ?? '–',
    lost,
    'answer lost (arrived)': `${unknown} (${unknownArrived})`,
    duplicates: reasonsOf(rest.duplicatesByReason),
    'early retries': earlyRetries,
    'lag < 2 s after': rest.recoveredAfterMs === null ? 'never' : `${rest.recoveredAfterMs} ms`,
    'first request, at most': `${Math.round(rest.longestFirstMs)} ms`,
    'retry late by, at most': `${Math.round(rest.latestRetryMs)} ms`,
    'slowest answer': `${Math.round(rest.slowestAnswerMs)} ms`,
    answers: answersOf(rest.answers),
  };
}

function reasonsOf(duplicates: Readonly<Record<string, number>>): string {
  const reasons = Object.entries(duplicates).map(([reason, count]) => `${count} ${reason}`);
  return reasons.join(', ') || '0';
}

function answersOf(answers: Readonly<Record<string, number>>): string {
  return Object.entries(answers)
    .map(([answer, count]) => `${count} × ${answer}`)
    .join(', ');
}
