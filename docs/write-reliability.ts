import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Verdict } from '../faults/audit/audit.ts';
import { findingsOf, isSound, type Result } from '../faults/report/result.ts';
import { RESULTS, type WrittenResult } from '../faults/report/write-result.ts';
import { ROUNDS } from '../faults/rounds.ts';
import { table } from './table.ts';
import { INTRODUCTION, REMARKS, SUSPICIONS } from './reliability-remarks.ts';
import { notSentOf, recordsOf } from './figures-of-runs.ts';
import { splitRuns } from './split-runs.ts';

interface Line {
  round: string;
  seconds: number;
  runs: WrittenResult[];
}

/** Returns the text of the page on reliability. */
export function reliabilityText(): string {
  const written = globSync('*.json', { cwd: RESULTS })
    .sort()
    .map((file) => JSON.parse(readFileSync(join(RESULTS, file), 'utf8')) as WrittenResult);
  const { newest, earlier } = splitRuns(written);
  return [
    INTRODUCTION,
    table([HEADER, ...linesOf(newest).map(rowOf)]),
    `\n${MACHINES}\n`,
    ...machinesOf(newest),
    '\n',
    wrongText(newest),
    `\n${SUSPECTED}`,
    `\n${LONG_OUTAGE}`,
    `\n${REBALANCES}`,
    earlierText(earlier),
  ].join('');
}

function earlierText(earlier: readonly WrittenResult[]): string {
  if (earlier.length === 0) return '';
  const rows = table([HEADER, ...linesOf(earlier).map(rowOf)]);
  const machines = machinesOf(earlier).join('');
  return `\n## Earlier runs\n\n${rows}\n${machines}\n${REMARKS}\n${wrongText(earlier)}`;
}

const SUSPECTED = `## What was suspected

A review of the code named nine faults that Posthorn might not withstand. Each was to be shown or refuted.

${table([['Suspicion', 'What came of it', 'By'], ...SUSPICIONS.map((row) => [...row])])}`;

/** Measured by hand: the load generator is not a part of this repository. */
const LONG_OUTAGE = `## Kafka away for 280 s at 900 messages/s

Measured from outside on the same machine, by a load generator that sends and receives: 20 endpoints, 1 KiB, one dispatcher and one
retry service. Kafka was suspended 6 s after the beginning of the load. The load ended with Kafka's return, so that the drain shows
what Posthorn can deliver. With two gateways, each of which had accepted half, the second one was killed five seconds after
Kafka's return, and the sweep published its messages. 2026-11-26. The suite runs the same with retries, and with the load going
on: \`npm run faults -- F5-frozen --seconds 280 --rate 900\`.

${table([
  ['Figure', 'One gateway (5cbdbc6)', 'Two, one of them killed (5cbdbc6)'],
  ['Accepted', '259,200', '257,400'],
  ['Other answers', '0', '0'],
  ['Slowest answer', '0.34 s (p50 7 ms, p99 0.07 s)', '0.55 s (p50 10 ms, p99 0.15 s)'],
  ['Lost', '0', '0'],
  ['Duplicates', '0', '0'],
  ['Records for each message', '1.000', '1.010'],
  ['Left when the load ended', '254,576', '253,919'],
  ['Last arrival after that', '65 s: 3,917/s', '78 s: 3,260/s'],
  [
    'Last arrival of the dead gateway',
    '–',
    '73 s after the kill, 63 s after its heartbeat expired',
  ],
])}
The closed loop of the same hour made 1,976 and 2,306 messages/s. With b9c35f0, in an hour in which it made 2,282 and 2,465, the last
message of the dead gateway arrived 57 s after its heartbeat had expired, and 1.006 records were published for each. How long that takes
is the time in which these two cores deliver the backlog of both.
`;

const REBALANCES = `## What a dispatcher that comes or goes costs

Measured in the same way: 20 endpoints, one stack with four dispatchers, from the send of a message to its arrival, over 50 s (40 s
for the kill). No delivery was lost, and none was made twice. Commit e3c43ce, 2026-11-26; with e7ab696 two were made twice after the kill.

${table([
  ['What happens', 'Messages/s', 'p50', 'p95', 'p99', 'Longest'],
  [
    'Three dispatchers are restarted one after the other',
    '300',
    '14 ms',
    '0.12 s',
    '0.47 s',
    '0.9 s',
  ],
  ['One leaves and joins every 5 s', '200', '7 ms', '0.11 s', '0.50 s', '0.8 s'],
  ['One is killed and does not come back', '200', '6 ms', '3.9 s', '9.1 s', '10.6 s'],
])}`;

const HEADER = [
  'Round',
  'Fault',
  'Date',
  'Runs',
  'Messages/s',
  'Accepted',
  'Not sent',
  'Lost',
  'Duplicates and why',
  'Records for a delivery',
  'Early retries',
  'Lag < 2 s after',
  'First request, at most',
  'Retry late by, at most',
  'Slowest answer',
  'Other answers',
  'Verdict',
];

const MACHINES = `Figures of several runs are sums; times are the longest. While 480 messages have no response, the
suite leaves out those that are due: they are not sent. Older runs did not write how many. Everything ran on one machine: load,
endpoints, Kafka, MongoDB, Redis and two processes of each service.
`;

/** In the order of the rounds. */
function linesOf(written: readonly WrittenResult[]): Line[] {
  const order = ROUNDS.map(({ name }) => name);
  const lines = new Map<string, Line>();
  for (const each of written) {
    const { round, seconds } = each.result;
    const line = lines.get(`${round} ${seconds}`) ?? { round, seconds, runs: [] };
    line.runs.push(each);
    lines.set(`${round} ${seconds}`, line);
  }
  return [...lines.values()].sort(
    (a, b) => order.indexOf(a.round) - order.indexOf(b.round) || a.seconds - b.seconds,
  );
}

function rowOf({ round, seconds, runs }: Line): string[] {
  const results = runs.map(({ result }) => result);
  const audited = results.filter((each) => each.kind === 'audited');
  const verdicts = audited.map(({ verdict }) => verdict);
  const { summary = '' } = ROUNDS.find(({ name }) => name === round) ?? {};
  const figures = verdicts.length === 0 ? Array<string>(11).fill('–') : figuresOf(verdicts);
  return [
    `${round}, ${seconds} s`,
    summary,
    [...new Set(results.map(({ startedAt }) => startedAt.slice(0, 10)))].join(', '),
    String(runs.length),
    [...new Set(audited.map(({ rate }) => rate))].join(', ') || '–',
    ...figures,
    results.every(isSound) ? 'good' : 'see below',
  ];
}

function figuresOf(verdicts: readonly Verdict[]): string[] {
  const sumOf = (count: (verdict: Verdict) => number): string =>
    String(verdicts.reduce((sum, verdict) => sum + count(verdict), 0));
  const lags = verdicts.map(({ recoveredAfterMs }) => recoveredAfterMs ?? Infinity);
  const slowest = Math.max(...verdicts.map(({ slowestAnswerMs }) => slowestAnswerMs));
  const longest = (ofRuns: readonly number[]): string =>
    ofRuns.length === 0 ? '–' : inSeconds(Math.max(...ofRuns));
  return [
    sumOf(({ accepted }) => accepted),
    notSentOf(verdicts),
    sumOf(({ lost }) => lost),
    countsOf(verdicts.map(({ duplicatesByReason }) => duplicatesByReason)),
    recordsOf(verdicts),
    sumOf(({ earlyRetries }) => earlyRetries),
    Number.isFinite(Math.max(...lags)) ? inSeconds(Math.max(...lags)) : 'never',
    longest(verdicts.flatMap(({ longestFirstMs }) => longestFirstMs ?? [])),
    longest(verdicts.flatMap(({ latestRetryMs }) => latestRetryMs ?? [])),
    inSeconds(slowest),
    countsOf(verdicts.map(({ answers }) => answers).map(without202)),
  ];
}

function without202(answers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(answers).filter(([answer]) => answer !== '202'));
}

function countsOf(counts: readonly Readonly<Record<string, number>>[]): string {
  const sums = new Map<string, number>();
  for (const [what, count] of counts.flatMap((each) => Object.entries(each))) {
    sums.set(what, (sums.get(what) ?? 0) + count);
  }
  return [...sums].map(([what, count]) => `${count} ${what}`).join(', ') || '0';
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function machinesOf(written: readonly WrittenResult[]): string[] {
  const texts = written.map(
    ({ machine: { cpu, cores, memoryGiB, system, node, kafka, commit } }) =>
      `- commit ${commit}: ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, Kafka ${kafka}\n`,
  );
  return [...new Set(texts)];
}

function wrongText(written: readonly WrittenResult[]): string {
  const wrong = written.filter(({ result }) => !isSound(result)).map(({ result }) => result);
  if (wrong.length === 0) return 'Nothing was wrong in the runs of the table.\n';
  return ['What was wrong:\n\n', ...wrong.map(describeWrong)].join('');
}

function describeWrong(result: Result): string {
  const found = findingsOf(result).map(({ what, count }) => `${what} (${count})`);
  return `- ${result.round}, ${result.seconds} s, ${result.startedAt.slice(0, 19)}Z: ${found.join('; ')}\n`;
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, 'reliability.md'), reliabilityText());
}
