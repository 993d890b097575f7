import {
  acceptedDeliveries,
  type AuditedDelivery,
  isSuccess,
  type Evidence,
  finding,
  type Finding,
  type Arrival,
  type Sent,
  type Stop,
} from './evidence.ts';
import {
  countByReason,
  type Duplicate,
  duplicatesOf,
  UNEXPLAINED,
  hasEarlyRetry,
  latestRetryMs,
} from './duplicates.ts';

/** The limits of a round. */
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

/** The figures of one round, and its findings. */
export interface Verdict {
  accepted: number;
  /** Messages of the load that were left out. */
  notSent: number;
  /** Messages whose response was lost, and how many of them arrived. */
  unknown: number;
  unknownArrived: number;
  deliveries: number;
  delivered: number;
  exhausted: number;
  lost: number;
  requests: number;
  duplicatesByReason: Record<string, number>;
  /** Deliveries that the API shows, also of messages whose response was lost. */
  stored: number;
  /** Published message-created records; null when their topic was deleted. */
  records: number | null;
  earlyRetries: number;
  recoveredAfterMs: number | null;
  /** From acceptance to the first request, at most. */
  longestFirstMs: number;
  /** How much longer than its delay a retry waited, at most. */
  latestRetryMs: number;
  slowestAnswerMs: number;
  answers: Readonly<Record<string, number>>;
  findings: Finding[];
}

const ACCEPTED = '202';

/** Compares the promised deliveries with the received requests. A pure function. */
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
    records: evidence.records,
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
  const withinMs = recoverWithinMs ?? Infinity;
  const isMissing = recoveredMs === null && recoverWithinMs !== null;
  const isLate = (recoveredMs ?? 0) > withinMs;
  return [
    ...finding('no recovery', isMissing ? [`not within ${withinMs} ms, nor later`] : []),
    ...finding('slow recovery', isLate ? [`${recoveredMs ?? 0} ms instead of ${withinMs} ms`] : []),
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

/** Returns how the API and the receiver disagree about a delivery; null when they agree. */
function stateProblem(
  { key, sent, endpoint, arrivals }: AuditedDelivery,
  { shown, refusalsOf, delaysMs }: Evidence,
): string | null {
  const state = shown.get(key);
  if (!state) return `${key}: the API does not show it`;
  const wanted = wantedStatus(arrivals.some(isSuccess), refusalsOf(sent.n, endpoint));
  if (state.status !== wanted) return `${key}: ${state.status} instead of ${wanted}`;
  if (state.attemptCount > arrivals.length) {
    return `${key}: ${state.attemptCount} attempts, ${arrivals.length} requests`;
  }
  const isShort = wanted === 'exhausted' && state.attemptCount !== delaysMs.length + 1;
  return isShort ? `${key}: exhausted after ${state.attemptCount} attempts` : null;
}

function wantedStatus(isReceived: boolean, refusals: number): string {
  if (isReceived) return 'delivered';
  return refusals === Infinity ? 'exhausted' : 'delivered';
}

type Strange =
  | 'no such message was sent'
  | 'it was refused'
  | 'it is for another endpoint'
  | 'the same message was accepted twice';

interface StrangeArrival {
  arrival: Arrival;
  why: Strange;
}

/** Returns the requests that no sent message explains. A message whose answer was lost may arrive, under one id. */
function strangeArrivals({ sent, arrivals }: Evidence): StrangeArrival[] {
  const byNumber = new Map(sent.map((each) => [each.n, each]));
  const idOf = new Map<number, string>();
  for (const { n, answer } of sent) if (answer.kind === 'accepted') idOf.set(n, answer.messageId);
  return arrivals.flatMap((arrival) => {
    const of = arrival.n === null ? undefined : byNumber.get(arrival.n);
    const why = of ? whyStrange(arrival, of, idOf) : 'no such message was sent';
    return why === null ? [] : [{ arrival, why }];
  });
}

/** Notes the first id of a message whose answer was lost. */
function whyStrange(
  { messageId, endpoint }: Arrival,
  { n, answer, endpoints }: Sent,
  idOf: Map<number, string>,
): Strange | null {
  if (answer.kind === 'refused') return 'it was refused';
  if (!endpoints.includes(endpoint)) return 'it is for another endpoint';
  const known = idOf.get(n);
  if (known === undefined) idOf.set(n, messageId);
  return known === undefined || known === messageId ? null : 'the same message was accepted twice';
}

interface Ends {
  stops: readonly Stop[];
  /** Services that ended by themselves. */
  crashes: readonly string[];
}

/** Returns the findings about the ends of services. */
export function findingsOfEnds({ stops, crashes }: Ends, stopWithinMs: number): Finding[] {
  return [
    ...finding('a service ended by itself', crashes),
    ...finding(
      'a stop went wrong',
      stops.flatMap((stop) => stopProblem(stop, stopWithinMs)),
    ),
  ];
}

function stopProblem({ service, tookMs, exit }: Stop, stopWithinMs: number): string[] {
  if (exit === 'exit code 0' && tookMs <= stopWithinMs) return [];
  return [`${service} ended with ${exit} after ${Math.round(tookMs)} ms`];
}

/** The load goes on for eight seconds after the recovery: its last half must be accepted. */
const LAST_MS = 4_000;
/**
 * One of two gateways that accepts nothing leaves a third of the messages: those with a key are repeated until the other
 * one accepts them. A single response may be lost at any time.
 */
const ACCEPTED_SHARE = 0.9;

interface Share {
  accepted: number;
  all: number;
}

function shareSince(sent: readonly Sent[], fromMs: number): Share {
  const since = sent.filter(({ sentAtMs }) => sentAtMs >= fromMs);
  const accepted = since.filter(({ answer }) => answer.kind === 'accepted').length;
  return { accepted, all: since.length };
}

function isEnough({ accepted, all }: Share): boolean {
  return accepted > 0 && accepted >= all * ACCEPTED_SHARE;
}

/** Whether messages are accepted that were sent since then. `sent` is in the order of the responses. */
export function isAccepting(sent: readonly Sent[], fromMs: number): boolean {
  const before = sent.findLastIndex(({ answeredAtMs }) => answeredAtMs < fromMs);
  return isEnough(shareSince(sent.slice(before + 1), fromMs));
}

/** A round proves something only when messages are accepted, also in its last seconds: the gateways have recovered then. */
export function findingsOfAcceptance(sent: readonly Sent[]): Finding[] {
  if (!sent.some(({ answer }) => answer.kind === 'accepted')) {
    return finding('nothing accepted', [`${sent.length} messages sent`]);
  }
  const lastMs = sent.reduce((last, { sentAtMs }) => Math.max(last, sentAtMs), 0);
  const share = shareSince(sent, lastMs - LAST_MS);
  const wrong = `${share.accepted} of ${share.all} messages in the last ${LAST_MS / 1_000} s`;
  return finding('not accepting again', isEnough(share) ? [] : [wrong]);
}

/** A delivery that waits longer than this for its first request counts as lag. */
export const LAG_MS = 2_000;

/** The longest time from the acceptance of a message to its first request at an endpoint, in milliseconds. */
export function longestFirstMs(deliveries: readonly AuditedDelivery[]): number {
  const waits = deliveries.flatMap(({ acceptedAtMs, arrivals: [first] }) =>
    first ? first.atMs - acceptedAtMs : [],
  );
  return waits.reduce((longest, each) => Math.max(longest, each), 0);
}

/**
 * How long after the end of the fault some delivery still had to wait longer than two seconds for its first request, in
 * milliseconds; null when one of them never came.
 */
export function recoveredAfterMs(
  deliveries: readonly AuditedDelivery[],
  endedAtMs: number,
): number | null {
  let lastMs = endedAtMs;
  for (const { acceptedAtMs, arrivals } of deliveries) {
    const [first] = arrivals;
    if (!first) return null;
    if (first.atMs - acceptedAtMs > LAG_MS) lastMs = Math.max(lastMs, first.atMs);
  }
  return lastMs - endedAtMs;
}
