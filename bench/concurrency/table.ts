import type { Run, Second } from './simulate.ts';

export interface Score {
  /** Successes of those that were possible, 0 to 1. */
  throughput: number;
  /** Seconds from the first one told until three in a row bring 95 % of what is possible; null: never. */
  secondsTo95: number | null;
  longestQueue: number;
  /** Of the receiver's latency, in milliseconds, over the whole run. */
  p99Ms: number;
  /** Refused of all that was sent, 0 to 1. */
  refused: number;
  meanLimit: number;
}

export function scoreOf(
  { seconds, latenciesMs }: Run,
  { possible, fromSecond }: { possible: number; fromSecond: number },
): Score {
  const told = seconds.slice(fromSecond);
  const total = (each: (second: Second) => number): number =>
    told.reduce((sum, second) => sum + each(second), 0);
  const reached = told.findIndex((_, index) => {
    const three = told.slice(index, index + 3);
    return three.every(({ succeeded }) => succeeded >= possible * 0.95);
  });
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  return {
    throughput: total(({ succeeded }) => succeeded) / (possible * told.length),
    secondsTo95: reached < 0 ? null : reached,
    longestQueue: Math.max(...told.map(({ longestQueue }) => longestQueue)),
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    refused:
      total(({ refused }) => refused) /
      Math.max(
        1,
        total(({ sent }) => sent),
      ),
    meanLimit: total(({ limit }) => limit) / told.length,
  };
}

const COLUMNS: Record<string, (score: Score) => string> = {
  throughput: ({ throughput }) => `${(throughput * 100).toFixed(1)} %`,
  'to 95 %': ({ secondsTo95 }) => (secondsTo95 === null ? 'never' : `${secondsTo95} s`),
  queue: ({ longestQueue }) => longestQueue.toString(),
  p99: ({ p99Ms }) => `${p99Ms.toFixed(0)} ms`,
  refused: ({ refused }) => `${(refused * 100).toFixed(2)} %`,
  'mean limit': ({ meanLimit }) => meanLimit.toFixed(0),
};

/** A table in Markdown, one row for each receiver and rule. */
export function tableOf(rows: { scenario: string; rule: string; score: Score }[]): string {
  const head = ['receiver', 'rule', ...Object.keys(COLUMNS)];
  const body = rows.map(({ scenario, rule, score }) => [
    scenario,
    rule,
    ...Object.values(COLUMNS).map((format) => format(score)),
  ]);
  const lines = [head, head.map(() => '---'), ...body];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  return lines
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)))
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}
