import type { Run, Second } from './simulate.ts';

export interface Score {
  /** Successes divided by the possible successes, 0 to 1. */
  throughput: number;
  /**
   * Seconds from the first scored one until three in a row reach 95 % of what is possible; null when
   * never.
   */
  secondsTo95: number | null;
  longestQueue: number;
  /** Latency of the receiver in milliseconds, over the whole run. */
  p99Ms: number;
  /** Refused requests divided by sent requests, 0 to 1. */
  refused: number;
  meanLimit: number;
  /** The most attempts that waited at once. */
  mostWaiting: number;
}

export function scoreOf(
  { seconds, latenciesMs }: Run,
  { possible, fromSecond }: { possible: number; fromSecond: number },
): Score {
  const scored = seconds.slice(fromSecond);
  const total = (each: (second: Second) => number): number =>
    scored.reduce((sum, second) => sum + each(second), 0);
  const reached = scored.findIndex((_, index) => {
    const three = scored.slice(index, index + 3);
    return three.every(({ succeeded }) => succeeded >= possible * 0.95);
  });
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  return {
    throughput: total(({ succeeded }) => succeeded) / (possible * scored.length),
    secondsTo95: reached < 0 ? null : reached,
    longestQueue: Math.max(...scored.map(({ longestQueue }) => longestQueue)),
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    refused:
      total(({ refused }) => refused) /
      Math.max(
        1,
        total(({ sent }) => sent),
      ),
    meanLimit: total(({ limit }) => limit) / scored.length,
    mostWaiting: Math.max(...scored.map(({ waiting }) => waiting)),
  };
}

const COLUMNS: Record<string, (score: Score) => string> = {
  throughput: ({ throughput }) => `${(throughput * 100).toFixed(1)} %`,
  'to 95 %': ({ secondsTo95 }) => (secondsTo95 === null ? 'never' : `${secondsTo95} s`),
  queue: ({ longestQueue }) => longestQueue.toString(),
  p99: ({ p99Ms }) => `${p99Ms.toFixed(0)} ms`,
  refused: ({ refused }) => `${(refused * 100).toFixed(2)} %`,
  'mean limit': ({ meanLimit }) => meanLimit.toFixed(0),
  waiting: ({ mostWaiting }) => mostWaiting.toString(),
};

/** Returns a Markdown table with one row for each receiver and rule. */
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
