import { findingsOfAcceptance } from './accepting.ts';
import { acceptedDeliveries, type AuditedDelivery, isSuccess } from './deliveries.ts';
import { countByReason, type Duplicate, duplicatesOf, UNEXPLAINED } from './duplicates.ts';
import { hasEarlyRetry, latestRetryMs } from './retry-times.ts';
import { findingsOfEnds } from './ends.ts';
import type { Evidence } from './evidence.ts';
import { finding, type Finding } from './finding.ts';
import { strangeArrivals } from './never-sent.ts';
import { longestFirstMs, recoveredAfterMs } from './recovery.ts';
import { stateProblem } from './states.ts';

/** What the round allows. */
export interface Limits {
  endedAtMs: number;
  /** Null when the lag after the fault is only reported. */
  recoverWithinMs: number | null;
  /** How long a service may take to stop. */
  stopWithinMs: number;
  /** How long a response of the API may take. */
  answerWithinMs: number;
  /** A message whose response was lost must not have been accepted. */
  losesNoAnswer: boolean;
  /** How many records more than deliveries may be published; null when that is not limited. */
  maxCopies: ((deliveries: number) => number) | null;
  /** Responses to the client that are allowed besides 202. */
  answers: readonly string[];
}

/** The figures of one round, and what is wrong. */
export interface Verdict {
  accepted: number;
  /** Messages of the load that were left out. Absent in older results. */
  notSent?: number;
  /** Messages whose response was lost, and how many of them arrived. */
  unknown: number;
  unknownArrived: number;
  deliveries: number;
  delivered: number;
  exhausted: number;
  lost: number;
  requests: number;
  duplicatesByReason: Record<string, number>;
  /** Deliveries that the API shows, also of messages whose response was lost. Absent in older results. */
  stored?: number;
  /** Published message-created records; absent in older results, and when their topic was deleted. */
  records?: number;
  earlyRetries: number;
  recoveredAfterMs: number | null;
  /** From acceptance to the first request. Absent in results from before 2026-11-25. */
  longestFirstMs?: number;
  /** How much longer than its delay a retry waited, at most. Absent where the one above is. */
  latestRetryMs?: number;
  slowestAnswerMs: number;
  answers: Readonly<Record<string, number>>;
  findings: Finding[];
}

const ACCEPTED = '202';

/** Compares what was promised with what was received. Reads no clock and changes nothing. */
export function audit(evidence: Evidence, limits: Limits): Verdict {
  const deliveries = acceptedDeliveries(evidence);
  const duplicates = deliveries.flatMap((each) => duplicatesOf(each, evidence));
  const lost = deliveries.filter((each) => isLost(each, evidence));
  const early = deliveries.filter((each) => hasEarlyRetry(each, evidence));
  const recovered = recoveredAfterMs(deliveries, limits.endedAtMs);
  const { slowestAnswerMs } = evidence;
  const messages = messagesOf(evidence);
  return {
    ...messages,
    notSent: evidence.notSent,
    deliveries: deliveries.length,
    delivered: deliveries.filter(({ arrivals }) => arrivals.some(isSuccess)).length,
    exhausted: [...evidence.shown.values()].filter(({ status }) => status === 'exhausted').length,
    lost: lost.length,
    requests: evidence.arrivals.length,
    duplicatesByReason: countByReason(duplicates),
    stored: evidence.shown.size,
    ...(evidence.records !== null && { records: evidence.records }),
    earlyRetries: early.length,
    recoveredAfterMs: recovered,
    longestFirstMs: longestFirstMs(deliveries),
    latestRetryMs: latestRetryMs(deliveries, evidence),
    slowestAnswerMs,
    answers: evidence.answers,
    findings: [
      ...finding(
        'lost',
        lost.map(({ key }) => key),
      ),
      ...finding('unexplained duplicate', unexplained(duplicates)),
      ...finding(
        'early retry',
        early.map(({ key }) => key),
      ),
      ...findingsOfArrivals(evidence),
      ...finding('the API and the receiver disagree', disagreements(deliveries, evidence)),
      ...findingsOfEnds(evidence, limits.stopWithinMs),
      ...(limits.losesNoAnswer ? lostAnswers(messages) : []),
      ...findingsOfAcceptance(evidence.sent),
      ...tooManyRecords(evidence, limits),
      ...findingsOfLimits(recovered, slowestAnswerMs, evidence, limits),
    ],
  };
}

/** Not received where the endpoint would have accepted it. */
function isLost({ sent, endpoint, arrivals }: AuditedDelivery, evidence: Evidence): boolean {
  const isRefused = evidence.refusalsOf(sent.n, endpoint) === Infinity;
  return isRefused ? arrivals.length === 0 : !arrivals.some(isSuccess);
}

function messagesOf({ sent, arrivals }: Evidence) {
  const unknown = new Set(sent.flatMap(({ n, answer }) => (answer.kind === 'unknown' ? n : [])));
  const arrived = new Set(arrivals.flatMap(({ n }) => (n !== null && unknown.has(n) ? n : [])));
  return {
    accepted: sent.filter(({ answer }) => answer.kind === 'accepted').length,
    unknown: unknown.size,
    unknownArrived: arrived.size,
  };
}

function unexplained(duplicates: readonly Duplicate[]): string[] {
  return duplicates
    .filter(({ reason }) => reason === UNEXPLAINED)
    .map(
      ({ key, firstAtMs, secondAtMs, history }) =>
        `${key} again after ${secondAtMs - firstAtMs} ms: ${history}`,
    );
}

function findingsOfArrivals(evidence: Evidence): Finding[] {
  const { arrivals } = evidence;
  const idsOf = (isWrong: (arrival: (typeof arrivals)[number]) => boolean): string[] =>
    arrivals.filter(isWrong).map(({ messageId }) => messageId);
  return [
    ...finding(
      'wrong signature',
      idsOf(({ isSigned }) => !isSigned),
    ),
    ...finding(
      'wrong body',
      idsOf(({ isIntact }) => !isIntact),
    ),
    ...finding(
      'received and never sent',
      strangeArrivals(evidence).map(({ arrival, why }) => `${arrival.messageId}: ${why}`),
    ),
  ];
}

function disagreements(deliveries: readonly AuditedDelivery[], evidence: Evidence): string[] {
  return deliveries.flatMap((each) => stateProblem(each, evidence) ?? []);
}

function findingsOfLimits(
  recoveredMs: number | null,
  slowestMs: number,
  { answers }: Evidence,
  limits: Limits,
): Finding[] {
  const { recoverWithinMs, answerWithinMs } = limits;
  const wrong = Object.keys(answers).filter(
    (answer) => answer !== ACCEPTED && !limits.answers.includes(answer),
  );
  const isLate = recoverWithinMs !== null && (recoveredMs ?? Infinity) > recoverWithinMs;
  const late = `${recoveredMs ?? 'never'} ms instead of ${recoverWithinMs ?? 0} ms`;
  return [
    ...finding('slow recovery', isLate ? [late] : []),
    ...finding('slow answer', slowestMs > answerWithinMs ? [`${Math.round(slowestMs)} ms`] : []),
    ...finding(
      'wrong answer',
      wrong.map((answer) => `${answers[answer] ?? 0} × ${answer}`),
    ),
  ];
}

function tooManyRecords({ shown, records }: Evidence, { maxCopies }: Limits): Finding[] {
  if (records === null || !maxCopies) return [];
  const isTooMany = records - shown.size > maxCopies(shown.size);
  return finding(
    'too many records',
    isTooMany ? [`${records} published for ${shown.size} deliveries`] : [],
  );
}

function lostAnswers({ unknownArrived }: Pick<Verdict, 'unknownArrived'>): Finding[] {
  if (unknownArrived === 0) return [];
  return [{ what: 'accepted without an answer', count: unknownArrived, examples: [] }];
}
