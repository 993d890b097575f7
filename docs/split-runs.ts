import type { WrittenResult } from '../faults/report/write-result.ts';

/** When all rounds were run again. A round that has runs since then shows only those; any other shows all of its runs. */
const BEGUN_ANEW_AT = '2026-11-25T17:00';
/** Rounds that were run again later, because a fault that they had found was mended. */
const MENDED_AT: Readonly<Record<string, string>> = {
  'F5-frozen': '2026-11-26T07:30',
  'F7-dispatcher-1': '2026-11-25T22:20',
  'restarts-together': '2026-11-26T00:30',
  upgrade: '2026-11-26T01:20',
};

/** Sorts the runs of the fault suite into those that count for the present version, and earlier ones. */
export function splitRuns(
  written: readonly WrittenResult[],
): Record<'newest' | 'earlier', WrittenResult[]> {
  const isRunAnew = (round: string): boolean =>
    written.some(({ result }) => result.round === round && result.startedAt >= BEGUN_ANEW_AT);
  const sinceOf = (round: string): string =>
    MENDED_AT[round] ?? (isRunAnew(round) ? BEGUN_ANEW_AT : '');
  const { newest = [], earlier = [] } = Object.groupBy(written, ({ result }) =>
    result.startedAt >= sinceOf(result.round) ? 'newest' : 'earlier',
  );
  return { newest, earlier };
}
