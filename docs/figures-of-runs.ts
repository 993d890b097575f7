import type { Verdict } from '../faults/audit/audit.ts';

/** Older runs did not write the figure: they do not count as runs that sent everything. */
export function notSentOf(verdicts: readonly Pick<Verdict, 'notSent'>[]): string {
  const known = verdicts.flatMap(({ notSent }) => notSent ?? []);
  if (known.length === 0) return '–';
  const sum = String(known.reduce((all, each) => all + each, 0));
  return known.length === verdicts.length
    ? sum
    : `${sum} in ${known.length} of ${verdicts.length} runs`;
}

/** How many message-created records were published for each delivery, in the runs that counted them. */
export function recordsOf(verdicts: readonly Pick<Verdict, 'records' | 'stored'>[]): string {
  const counted = verdicts.flatMap(({ records, stored }) =>
    records === undefined || stored === undefined ? [] : { records, stored },
  );
  if (counted.length === 0) return '–';
  const sumOf = (figure: 'records' | 'stored'): number =>
    counted.reduce((sum, each) => sum + each[figure], 0);
  return (sumOf('records') / sumOf('stored')).toFixed(3);
}
