import { findingsOf, isSound, type Result } from './result.ts';

/** Prints one line for each run, and below it what is wrong. */
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
    'not sent': rest.notSent ?? '–',
    deliveries,
    delivered,
    exhausted,
    'records published': rest.records ?? '–',
    lost,
    'answer lost (arrived)': `${unknown} (${unknownArrived})`,
    duplicates: reasonsOf(rest.duplicatesByReason),
    'early retries': earlyRetries,
    'lag < 2 s after': rest.recoveredAfterMs === null ? 'never' : `${rest.recoveredAfterMs} ms`,
    'first request, at most': `${Math.round(rest.longestFirstMs ?? 0)} ms`,
    'retry late by, at most': `${Math.round(rest.latestRetryMs ?? 0)} ms`,
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
