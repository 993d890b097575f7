import {
  createFifo,
  createPlaceOrder,
  type Fifo,
  type PlaceOrder,
} from '@posthorn/platform/async/fair-queue.ts';
import type { PayloadMemory, ReservedPayload } from '../payloads.ts';
import type { CircuitReport } from './circuit-rules.ts';
import type { ReportToCircuit } from './circuits.ts';
import type { LimitBounds } from './concurrency-limit.ts';
import {
  asksForHold,
  concurrencyOf,
  createEndpoint,
  type Endpoint,
  isOverdue,
  isSlow,
  learn,
  learnWithoutToken,
  resetForNewUrl,
  runningOf,
} from './endpoint.ts';
import {
  type Admission,
  type AttemptReport,
  type AttemptView,
  type Candidate,
  type CircuitView,
  decide,
  type Decision,
  type EndpointView,
  expectedWaitMs,
  fastQueuesInOrder,
  MAX_WAIT_MS,
  MIN_WAIT_MS,
  type Place,
  type QueueKind,
  type Reason,
} from './gate.ts';
import {
  advanceHostPace,
  BOOK_AHEAD_MS,
  bookAtHost,
  createHostPace,
  type HandedOverHold,
  hasTurnsAtHost,
  hostKeyOf,
  type HostPace,
  hostSpacingMs,
  inheritedHolds,
  type InheritedHolds,
  inheritedUntilMs,
  isHostIdle,
  reserveHostStart,
  untilHostAllowsMs,
} from './host-pace.ts';
import {
  advancePace,
  paceOf,
  recentSuccesses,
  spacingMs,
  untilPaceAllowsMs,
} from './learned-rate.ts';

export interface Queues {
  /** Resolves when the attempt may be made, or must leave. */
  enter: (candidate: Candidate) => Promise<Admission>;
  /** Requests under way. */
  running: () => number;
  /** True when all places of the pool are taken and enough attempts wait to take them over. */
  isFull: (pool: Pool) => boolean;
  waiting: () => number;
  endpoints: () => Iterable<Endpoint>;
  /** How many endpoints are remembered. */
  size: () => number;
  /** How many inherited holds are kept. */
  inheritedHolds: () => number;
  /** `holds`: webhook id → what is left of a hold that a former owner was asked for. */
  inheritHolds: (holds: ReadonlyMap<string, HandedOverHold>) => void;
  /**
   * Marks endpoints that turned slow, evicts attempts that waited too long or that memory has no
   * capacity for, and forgets idle endpoints. To be called each 100 ms.
   */
  tick: () => void;
  /** Evicts every waiting attempt; from then on none may wait. */
  close: () => void;
}

/**
 * An attempt that is expected to wait longer drops its payload. For less it is not worth loading it
 * again.
 */
const KEEP_PAYLOAD_MS = 1_000;

/**
 * Every endpoint has queues of its own, and free places go round between companies and their
 * endpoints. The gate decides whether an attempt is made, waits or leaves.
 */
export function createQueues(deps: QueueDeps): Queues {
  const state = createQueueState(deps);
  const { limits, taken, waiting } = state;
  deps.payloads.onFreed(() => {
    startWaitingForMemory(state);
  });
  return {
    enter: (candidate) => enter(state, candidate),
    running: () => state.requests.size,
    isFull: (pool) => taken[pool] >= limits[pool] && waiting[pool] >= limits[pool] / 2,
    waiting: () => waiting.fast + waiting.slow,
    endpoints: () => state.endpoints.values(),
    size: () => state.endpoints.size,
    inheritedHolds: () => state.inheritedHolds.size,
    inheritHolds: (holds) => {
      inheritHolds(state, holds);
    },
    tick: () => {
      markSlow(state);
      evictOverdue(state);
      evictSurplus(state);
      forgetIdle(state);
    },
    close: () => {
      state.isClosed = true;
      evictAll(state);
    },
  };
}

function inheritHolds(state: QueueState, holds: ReadonlyMap<string, HandedOverHold>): void {
  state.inheritedHolds = inheritedHolds(holds, state.monotonicMs());
  for (const id of holds.keys()) {
    const endpoint = state.endpoints.get(id);
    if (!endpoint) continue;
    const untilMs = inheritedUntilMs(state.inheritedHolds, endpoint);
    endpoint.holdUntilMs = Math.max(endpoint.holdUntilMs, untilMs);
  }
}

function enter(state: QueueState, candidate: Candidate): Promise<Admission> {
  state.onArrival(candidate);
  const formerUrl = state.endpoints.get(candidate.webhookId)?.url ?? candidate.url;
  const endpoint = updateEndpoint(state, candidate);
  // What waits for the hold of the former URL need not wait any more.
  if (formerUrl !== candidate.url) {
    state.inNextLoop(() => {
      reschedule(state, endpoint);
    });
  }
  const { queue } = candidate;
  const ahead = endpoint.waiting[queue].size();
  const decision = decideForNew(state, endpoint, candidate, ahead);
  if (decision.kind !== 'wait' || state.isClosed) {
    return Promise.resolve(withoutWait(applyDecision(state, endpoint, candidate, decision)));
  }
  const waitMs = expectedWaitMs(
    attemptViewOf(state, endpoint, candidate, { ahead, isWaiting: false }),
    endpointViewOf(state, endpoint, candidate),
  );
  if (waitMs > KEEP_PAYLOAD_MS) candidate.dropPayload();
  return new Promise((admit) => {
    endpoint.waiting[queue].push({ candidate, sinceMs: state.monotonicMs(), admit });
    state.waiting[poolOf(queue)] += 1;
    // Its time may have come since the gate was asked.
    if (ahead === 0) reschedule(state, endpoint);
  });
}

function withoutWait(admission: Admission): Admission {
  if (admission.kind === 'place') admission.place.hasWaited = false;
  return admission;
}

export interface QueueLimits {
  /** Attempts at once to one endpoint. */
  perEndpoint: LimitBounds;
  /** Attempts per second of one company to one host; 0 for no limit. */
  perHostPerSecond: number;
  /** Places of this dispatcher for the first and retry queues of all endpoints. */
  fast: number;
  /** Places of this dispatcher for the slow lane. */
  slow: number;
  /** Attempts that start in one iteration of the event loop. */
  startsPerLoop: Record<Pool, number>;
}

export interface QueueDeps {
  limits: QueueLimits;
  /** How long an attempt may wait in memory for its endpoint now, in milliseconds. */
  maxWaitMs: () => number;
  /** True while this process has no CPU time left, see watch-overload.ts. */
  isOverloaded: () => boolean;
  /** An attempt has arrived: its circuit must be known before the gate is asked. */
  onArrival: (candidate: Candidate) => void;
  circuitOf: (candidate: Candidate) => CircuitView;
  /** For how long the company has been suspended, in milliseconds; null when it is not. */
  suspendedForMs: (companyId: string) => number | null;
  payloads: Pick<PayloadMemory, 'hasRoom' | 'reserve' | 'onFreed'>;
  /** Tells the circuit that the attempt begins. Call the returned function with its report, or null. */
  beginAttempt: (candidate: Candidate) => ReportToCircuit;
  /** The endpoint at this URL asked for a hold of this many milliseconds. */
  onHold: (webhookId: string, url: string, forMs: number) => void;
  nowMs: () => number;
  /** For waits, holds and paces. */
  monotonicMs: () => number;
  /** For durations: leaves out the time in which the event loop was blocked, see stall-free-clock.ts. */
  stallFreeMs: () => number;
  /** Calls `act` in the next iteration of the event loop. */
  inNextLoop: (act: () => void) => void;
  /** Calls `wake` after this time. Returns a function that cancels the timer. */
  wakeAfter: (ms: number, wake: () => void) => () => void;
}

/** The first and retry queues share one pool of places; the slow lane has its own. */
type Pool = 'fast' | 'slow';

interface WaitingAttempt {
  candidate: Candidate;
  /** Monotonic, milliseconds. */
  sinceMs: number;
  admit: (admission: Admission) => void;
}

/** An endpoint with its queues. */
interface QueuedEndpoint extends Endpoint {
  /** Where its attempts go. What is known of it is known of this URL. */
  url: string;
  waiting: Record<QueueKind, Fifo<WaitingAttempt>>;
  /** Cancels the timer that wakes its queues; null when there is none. */
  cancelWake: (() => void) | null;
  /** When that timer fires, by `monotonicMs`. */
  wakeAtMs: number;
  /** Counts the choices between its first attempts and its retries. */
  choices: number;
}

/** An attempt that has a place. */
interface RunningAttempt {
  endpoint: QueuedEndpoint;
  queue: QueueKind;
  reportToCircuit: ReportToCircuit;
  payload: ReservedPayload | null;
  /** When its request started, by `stallFreeMs`; null before. */
  startedStallFreeMs: number | null;
  /** The same by `monotonicMs`. */
  startedMs: number;
  isOverdue: boolean;
  /** It is counted in `slowFast`. */
  isSlowFast: boolean;
  /** The URL was changed while its request was under way, which says nothing of the new one. */
  isOfFormerUrl: boolean;
  isOver: boolean;
}

interface QueueState extends QueueDeps {
  endpoints: Map<string, QueuedEndpoint>;
  /** Company id and host → the pace of its attempts to that host. Empty without a limit. */
  hosts: Map<string, HostPace>;
  /** Requests under way, in the order in which they started. */
  requests: Set<RunningAttempt>;
  taken: Record<Pool, number>;
  waiting: Record<Pool, number>;
  /** Attempts that may still start in this iteration of the event loop. */
  startsLeft: Record<Pool, number>;
  isNextLoopScheduled: boolean;
  order: Record<Pool, PlaceOrder<QueuedEndpoint>>;
  /** Endpoints of which an attempt could start if there were memory for its payload. */
  awaitingMemory: Record<Pool, PlaceOrder<QueuedEndpoint>>;
  /** Fast places of attempts that are overdue, or got them while their endpoint was slow. */
  slowFast: number;
  isClosed: boolean;
  inheritedHolds: InheritedHolds;
}

const QUEUES: readonly QueueKind[] = ['first', 'retry', 'slow'];

function createQueueState(deps: QueueDeps): QueueState {
  return {
    ...deps,
    endpoints: new Map(),
    hosts: new Map(),
    requests: new Set(),
    taken: { fast: 0, slow: 0 },
    waiting: { fast: 0, slow: 0 },
    startsLeft: { ...deps.limits.startsPerLoop },
    isNextLoopScheduled: false,
    order: { fast: createPlaceOrder(), slow: createPlaceOrder() },
    awaitingMemory: { fast: createPlaceOrder(), slow: createPlaceOrder() },
    slowFast: 0,
    isClosed: false,
    inheritedHolds: new Map(),
  };
}

function poolOf(queue: QueueKind): Pool {
  return queue === 'slow' ? 'slow' : 'fast';
}

/** True when a place is free and this iteration of the event loop has starts left. */
function mayStart({ taken, limits, startsLeft }: QueueState, pool: Pool): boolean {
  return taken[pool] < limits[pool] && startsLeft[pool] > 0;
}

/** Returns the endpoint of the candidate, added when it is new, with the rate limit and the host that it has now. */
function updateEndpoint(state: QueueState, candidate: Candidate): QueuedEndpoint {
  const { webhookId, rateLimitPerSecond } = candidate;
  const known = state.endpoints.get(webhookId);
  const endpoint = known ?? createQueuedEndpoint(state, candidate);
  if (!known) state.endpoints.set(webhookId, endpoint);
  if (endpoint.url !== candidate.url) moveTo(state, endpoint, candidate.url);
  endpoint.rateLimitPerSecond = rateLimitPerSecond;
  endpoint.host = ensureHostPace(state, candidate);
  return endpoint;
}

/** A changed URL is another endpoint: the hold of the old one would keep it without attempts for an hour. */
function moveTo(state: QueueState, endpoint: QueuedEndpoint, url: string): void {
  endpoint.url = url;
  resetForNewUrl(endpoint, state.limits.perEndpoint);
  endpoint.holdUntilMs = inheritedUntilMs(state.inheritedHolds, endpoint);
  for (const attempt of state.requests) {
    if (attempt.endpoint !== endpoint) continue;
    attempt.isOfFormerUrl = true;
    attempt.isOverdue = false;
  }
}

/** Returns the pace of the candidate's company to its host, added when it is new; null without a limit. */
function ensureHostPace({ limits, hosts }: QueueState, candidate: Candidate): HostPace | null {
  if (limits.perHostPerSecond === 0) return null;
  const key = hostKeyOf(candidate.companyId, candidate.url);
  const known = hosts.get(key);
  if (known) return known;
  const host = createHostPace(limits.perHostPerSecond);
  hosts.set(key, host);
  return host;
}

function createQueuedEndpoint(
  { limits, inheritedHolds }: QueueState,
  candidate: Candidate,
): QueuedEndpoint {
  return {
    ...createEndpoint(candidate, limits.perEndpoint),
    url: candidate.url,
    holdUntilMs: inheritedUntilMs(inheritedHolds, candidate),
    waiting: { first: createFifo(), retry: createFifo(), slow: createFifo() },
    cancelWake: null,
    wakeAtMs: Infinity,
    choices: 0,
  };
}

function waitingOf({ waiting }: QueuedEndpoint): number {
  return waiting.first.size() + waiting.retry.size() + waiting.slow.size();
}

function isIdle(endpoint: QueuedEndpoint): boolean {
  return runningOf(endpoint) + waitingOf(endpoint) === 0;
}

const POOLS: readonly Pool[] = ['fast', 'slow'];
/** Fast once more at the end: when the queue of the slow lane is empty, its quarter is free for others. */
const SERVED: readonly Pool[] = ['fast', 'slow', 'fast'];
const SLOW_ONLY: readonly QueueKind[] = ['slow'];

/** Applies a decision of the gate. The one place that does. */
function applyDecision(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  decision: Decision,
): Admission {
  switch (decision.kind) {
    case 'now':
      countStart(state, poolOf(candidate.queue));
      return { kind: 'place', place: takePlace(state, endpoint, candidate, reschedule) };
    case 'slow_lane':
      return { kind: 'slow_lane' };
    case 'wait':
      return refuseWait(state, endpoint, candidate, decision);
    case 'defer': {
      const turnAtMs = bookTurn(state, endpoint, candidate, decision);
      return { kind: 'defer', because: decision.because, turnAtMs };
    }
  }
}

/**
 * Of 2,000 attempts that come due together, each company starts some in each iteration of the event
 * loop. Between two iterations the process reads the responses that have come.
 */
function countStart(state: QueueState, pool: Pool): void {
  state.startsLeft[pool] -= 1;
  if (state.isNextLoopScheduled) return;
  state.isNextLoopScheduled = true;
  state.inNextLoop(() => {
    state.isNextLoopScheduled = false;
    state.startsLeft = { ...state.limits.startsPerLoop };
    for (const each of SERVED) startWaiting(state, each);
  });
}

/**
 * For an attempt that would have to wait in a dispatcher that stops. Another dispatcher reads the slow
 * lane at once; what must not go there is deferred.
 */
function refuseWait(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  { because }: Extract<Decision, { kind: 'wait' }>,
): Admission {
  if (candidate.queue !== 'slow' && candidate.rateLimitPerSecond === null) {
    return { kind: 'slow_lane' };
  }
  return { kind: 'defer', because, turnAtMs: bookBehindOthers(state, endpoint, 0) };
}

/** To be called when something changed at the endpoint, or a place came free. */
function reschedule(state: QueueState, endpoint: QueuedEndpoint): void {
  updateHeads(state, endpoint);
  for (const pool of SERVED) startWaiting(state, pool);
  forgetIfTooMany(state, endpoint);
}

/**
 * Asks the gate for the first attempt of each queue of the endpoint. Those that must leave are
 * evicted. An endpoint with an attempt that may be made stands in the order of its pool, and one with an attempt that
 * lacks memory in the order of those.
 */
function updateHeads(state: QueueState, endpoint: QueuedEndpoint): void {
  const isReady: Record<Pool, boolean> = { fast: false, slow: false };
  const lacksMemory: Record<Pool, boolean> = { fast: false, slow: false };
  let wakeInMs = Infinity;
  for (const queue of QUEUES) {
    const decision = evictHeads(state, endpoint, queue);
    if (decision?.kind === 'now') isReady[poolOf(queue)] = true;
    if (decision?.kind !== 'wait') continue;
    if (decision.because === 'memory') lacksMemory[poolOf(queue)] = true;
    if (decision.because === 'host') reserveHostStart(endpoint, state.monotonicMs());
    wakeInMs = Math.min(wakeInMs, decision.wakeInMs);
  }
  for (const pool of POOLS) {
    if (isReady[pool]) state.order[pool].add(endpoint);
    else state.order[pool].remove(endpoint);
    if (lacksMemory[pool]) state.awaitingMemory[pool].add(endpoint);
    else state.awaitingMemory[pool].remove(endpoint);
  }
  setWake(state, endpoint, wakeInMs);
}

/** Returns the decision for the first attempt that stays; null when none does. */
function evictHeads(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
): Decision | null {
  for (;;) {
    const head = endpoint.waiting[queue].peek();
    if (!head) return null;
    const decision = decideForHead(state, endpoint, head.candidate);
    if (decision.kind === 'now' || decision.kind === 'wait') return decision;
    takeHead(state, endpoint, queue);
    head.admit(applyDecision(state, endpoint, head.candidate, decision));
  }
}

function setWake(state: QueueState, endpoint: QueuedEndpoint, inMs: number): void {
  const atMs = state.monotonicMs() + inMs;
  if (endpoint.cancelWake && endpoint.wakeAtMs <= atMs && inMs < Infinity) return;
  endpoint.cancelWake?.();
  endpoint.cancelWake = null;
  endpoint.wakeAtMs = atMs;
  if (inMs === Infinity) return;
  endpoint.cancelWake = state.wakeAfter(inMs, () => {
    endpoint.cancelWake = null;
    reschedule(state, endpoint);
  });
}

/** To be called when memory for payloads came free. */
function startWaitingForMemory(state: QueueState): void {
  for (const pool of SERVED) startWaiting(state, pool);
}

/** What waited for memory goes first: it had its turn before. */
function startWaiting(state: QueueState, pool: Pool): void {
  const { order, awaitingMemory, payloads } = state;
  while (mayStart(state, pool)) {
    const endpoint = awaitingMemory[pool].next(payloads.hasRoom) ?? order[pool].next();
    if (!endpoint) return;
    startNext(state, endpoint, pool);
    updateHeads(state, endpoint);
  }
}

function startNext(state: QueueState, endpoint: QueuedEndpoint, pool: Pool): void {
  countChoice(endpoint, pool);
  for (const queue of queuesInOrder(endpoint, pool)) {
    const head = endpoint.waiting[queue].peek();
    if (!head) continue;
    const decision = decideForHead(state, endpoint, head.candidate);
    if (decision.kind !== 'now') continue;
    takeHead(state, endpoint, queue);
    head.admit(applyDecision(state, endpoint, head.candidate, decision));
    return;
  }
}

function queuesInOrder(endpoint: QueuedEndpoint, pool: Pool): readonly QueueKind[] {
  return pool === 'slow' ? SLOW_ONLY : fastQueuesInOrder(endpoint.choices);
}

/** Only a real choice between first attempts and retries counts. */
function countChoice(endpoint: QueuedEndpoint, pool: Pool): void {
  const { waiting } = endpoint;
  const isChoice = pool === 'fast' && waiting.first.size() > 0 && waiting.retry.size() > 0;
  if (isChoice) endpoint.choices += 1;
}

function takeHead(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
): WaitingAttempt | undefined {
  state.waiting[poolOf(queue)] -= 1;
  return endpoint.waiting[queue].shift();
}

/** Called when a place is free again. */
type AfterEnd = (state: QueueState, endpoint: QueuedEndpoint) => void;

/**
 * Takes a place at the endpoint and in its pool, memory for the payload, and one start of its pace, and begins the
 * attempt at its circuit.
 */
function takePlace(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  afterEnd: AfterEnd,
): Place {
  const { queue } = candidate;
  const attempt: RunningAttempt = {
    endpoint,
    queue,
    reportToCircuit: state.beginAttempt(candidate),
    payload: candidate.hasPayload() ? null : state.payloads.reserve(endpoint.companyId),
    startedStallFreeMs: null,
    startedMs: 0,
    isOverdue: false,
    isSlowFast: false,
    isOfFormerUrl: false,
    isOver: false,
  };
  if (queue !== 'slow' && isSlow(endpoint, state.monotonicMs())) countSlowFast(state, attempt);
  state.taken[poolOf(queue)] += 1;
  endpoint.running[queue] += 1;
  endpoint.wasSlowLast = queue === 'slow';
  advancePace(endpoint, state.monotonicMs(), waitingOf(endpoint) > 0);
  advanceHostPace(endpoint, state.monotonicMs());
  return {
    payload: attempt.payload,
    hasWaited: true,
    begin: () => begin(state, attempt),
    end: (report) => end(state, attempt, report, afterEnd),
  };
}

/** Counts a fast place that a slow endpoint holds, once. */
function countSlowFast(state: QueueState, attempt: RunningAttempt): void {
  if (attempt.isSlowFast) return;
  attempt.isSlowFast = true;
  state.slowFast += 1;
}

function begin(state: QueueState, attempt: RunningAttempt): boolean {
  if (attempt.endpoint.holdUntilMs > state.monotonicMs()) return false;
  // Begun again: the requests are kept in the order in which they started.
  if (attempt.startedStallFreeMs !== null) state.requests.delete(attempt);
  attempt.startedStallFreeMs = state.stallFreeMs();
  attempt.startedMs = state.monotonicMs();
  attempt.isOfFormerUrl = false;
  state.requests.add(attempt);
  return true;
}

async function end(
  state: QueueState,
  attempt: RunningAttempt,
  report: AttemptReport | null,
  afterEnd: AfterEnd,
): Promise<void> {
  if (attempt.isOver) return;
  attempt.isOver = true;
  const { endpoint } = attempt;
  // Without a token the endpoint got nothing, and nothing is reported to its circuit.
  const shown = report?.outcome === 'token_failed' ? null : report;
  if (shown) learnFrom(state, attempt, shown);
  else if (report) learnWithoutToken(endpoint, durationMs(state, attempt), state.monotonicMs());
  try {
    await attempt.reportToCircuit(shown && circuitReportOf(state, endpoint, shown));
  } finally {
    // Not earlier: an attempt that came meanwhile would take the place of those that wait for it.
    freePlace(state, attempt);
    attempt.payload?.release();
    afterEnd(state, endpoint);
  }
}

function circuitReportOf(
  { monotonicMs }: QueueState,
  { rate }: QueuedEndpoint,
  report: AttemptReport,
): CircuitReport {
  return {
    outcome: report.outcome,
    asksForHold: asksForHold(report),
    recentSuccesses: recentSuccesses(rate, monotonicMs()),
  };
}

function learnFrom(state: QueueState, attempt: RunningAttempt, report: AttemptReport): void {
  const { endpoint, startedStallFreeMs, startedMs, isOfFormerUrl } = attempt;
  if (startedStallFreeMs === null || isOfFormerUrl) return;
  const endedMs = state.monotonicMs();
  const observed = {
    ...report,
    endedMs,
    startedMs,
    durationMs: durationMs(state, attempt),
    running: runningOf(endpoint),
    isLimited: waitingOf(endpoint) > 0,
  };
  const heldUntilMs = endpoint.holdUntilMs;
  learn(endpoint, observed, state.limits.perEndpoint);
  if (endpoint.holdUntilMs > heldUntilMs) {
    state.onHold(endpoint.webhookId, endpoint.url, endpoint.holdUntilMs - endedMs);
  }
}

function durationMs(state: QueueState, { startedStallFreeMs }: RunningAttempt): number {
  const nowMs = state.stallFreeMs();
  return nowMs - (startedStallFreeMs ?? nowMs);
}

function freePlace(state: QueueState, attempt: RunningAttempt): void {
  const { endpoint, queue, isOverdue, isSlowFast } = attempt;
  state.requests.delete(attempt);
  state.taken[poolOf(queue)] -= 1;
  endpoint.running[queue] -= 1;
  if (isOverdue) endpoint.overdue -= 1;
  if (isSlowFast) state.slowFast -= 1;
}

/** The backlog of a dead endpoint comes back a hundred a second, not all at once. */
const SPREAD_MS = 10;
const MAX_SPREAD_MS = 30 * 60_000;

/**
 * Returns when a deferred attempt is to come again, in milliseconds since 1970. Books that time at
 * the endpoint, unless its circuit is open, its company is suspended, memory was short, or the attempt keeps a turn
 * that it was given before.
 */
function bookTurn(
  state: QueueState,
  endpoint: QueuedEndpoint,
  { turnAtMs }: Candidate,
  { because, inMs }: Extract<Decision, { kind: 'defer' }>,
): number {
  const nowMs = state.nowMs();
  // Not at the endpoint, which can take it.
  if (because === 'suspended') return nowMs + inMs;
  if (because === 'memory') return nowMs + Math.max(BOOK_AHEAD_MS, inMs);
  if (because === 'circuit') {
    endpoint.deferredByCircuit += 1;
    return nowMs + Math.max(inMs, spreadMsOf(endpoint));
  }
  if (turnAtMs !== null && turnAtMs > nowMs) return turnAtMs;
  if (because === 'host' && endpoint.host)
    return bookAtHost(endpoint.host, nowMs + Math.max(BOOK_AHEAD_MS, inMs));
  return bookBehindOthers(state, endpoint, inMs);
}

function spreadMsOf({ deferredByCircuit }: QueuedEndpoint): number {
  return Math.min(deferredByCircuit * SPREAD_MS, MAX_SPREAD_MS);
}

/** Books a turn behind the attempts that wait here and the turns that were booked before. */
function bookBehindOthers(state: QueueState, endpoint: QueuedEndpoint, inMs: number): number {
  const earliestMs = state.nowMs() + Math.max(BOOK_AHEAD_MS, inMs);
  endpoint.bookedUntilMs =
    Math.max(endpoint.bookedUntilMs, earliestMs) + spacingMs(endpoint, state.monotonicMs());
  return endpoint.bookedUntilMs;
}

interface QueuePosition {
  /** How many attempts of its queue are ahead of it. */
  ahead: number;
  /** False when it has just come and does not stand in a queue yet. */
  isWaiting: boolean;
}

/**
 * Memory is asked for by the company of the endpoint, as `startWaiting` does. If the two named different companies,
 * `startWaiting` would choose the same endpoint again and again.
 */
function attemptViewOf(
  { nowMs, suspendedForMs, payloads }: QueueState,
  endpoint: QueuedEndpoint,
  { queue, companyId, turnAtMs, hasPayload }: Candidate,
  { ahead, isWaiting }: QueuePosition,
): AttemptView {
  return {
    queue,
    ahead,
    turnInMs: turnAtMs === null ? 0 : Math.max(0, turnAtMs - nowMs()),
    precedesBooked: isWaiting || turnAtMs !== null,
    lacksMemory: !hasPayload() && !payloads.hasRoom(endpoint.companyId),
    suspendedForMs: suspendedForMs(companyId),
  };
}

function endpointViewOf(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
): EndpointView {
  const nowMs = state.monotonicMs();
  const { running, waiting, holdUntilMs, bookedUntilMs, host } = endpoint;
  const bookedMs = Math.max(bookedUntilMs, host?.bookedUntilMs ?? 0);
  return {
    circuit: state.circuitOf(candidate),
    isSlow: isSlow(endpoint, nowMs),
    hasRateLimit: candidate.rateLimitPerSecond !== null,
    isPaced: hasTurnsAtHost(endpoint, state.nowMs()) || paceOf(endpoint, nowMs) !== null,
    holdInMs: Math.max(0, holdUntilMs - nowMs),
    paceInMs: untilPaceAllowsMs(endpoint, nowMs),
    hostInMs: untilHostAllowsMs(endpoint, nowMs),
    bookedInMs: bookedMs === 0 ? 0 : Math.max(0, bookedMs - state.nowMs()),
    running,
    waitingSlow: waiting.slow.size(),
    wasSlowLast: endpoint.wasSlowLast,
    concurrency: concurrencyOf(endpoint),
    spacingMs: Math.max(spacingMs(endpoint, nowMs), hostSpacingMs(endpoint, nowMs)),
  };
}

/**
 * The position of the first attempt of a queue. Whether a place is free is not asked here: it is
 * checked when the endpoint comes next in the order of its pool.
 */
const HEAD = { ahead: 0, isWaiting: true, hasPlace: true };

/** Returns the decision of the gate for an attempt that has just come. */
function decideForNew(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  ahead: number,
): Decision {
  const hasPlace = mayStart(state, poolOf(candidate.queue));
  return decideFor(state, endpoint, candidate, { ahead, isWaiting: false, hasPlace });
}

/** Returns the decision of the gate for the first attempt of a queue. */
function decideForHead(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
): Decision {
  return decideFor(state, endpoint, candidate, HEAD);
}

/** Returns the decision of the gate for one attempt, with what is known now. */
function decideFor(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  { ahead, isWaiting, hasPlace }: QueuePosition & { hasPlace: boolean },
): Decision {
  return decide(
    attemptViewOf(state, endpoint, candidate, { ahead, isWaiting }),
    endpointViewOf(state, endpoint, candidate),
    {
      hasPlace,
      // Slow endpoints together hold at most a quarter of the fast places.
      maySlowUseFast: state.slowFast < state.limits.fast / 4,
      maxWaitMs: state.maxWaitMs(),
      isOverloaded: isDueToOverload(state, poolOf(candidate.queue), ahead),
    },
  );
}

/**
 * True when a queue of this length is due to our overload. Deferring its attempts would not help.
 * One that is longer than all places together, and than twice the mean of all endpoints, is not: its
 * endpoint takes less than others. After an outage of Kafka every queue is long, and with eight endpoints
 * 189,000 deferrals were written for 82,000 attempts.
 */
function isDueToOverload(
  { isOverloaded, limits, waiting, endpoints }: QueueState,
  pool: Pool,
  ahead: number,
): boolean {
  if (!isOverloaded()) return false;
  const mean = waiting[pool] / Math.max(1, endpoints.size);
  return ahead < Math.max(limits.fast, 2 * mean);
}

const CLOSING: Extract<Decision, { kind: 'wait' }> = {
  kind: 'wait',
  because: 'busy',
  wakeInMs: Infinity,
};

/**
 * Defers what has waited too long for its endpoint, or for memory, which others may hold for long. What waits for a
 * place of this process or for its CPU time stays.
 */
function evictOverdue(state: QueueState): void {
  const beforeMs = state.monotonicMs() - MAX_WAIT_MS;
  for (const endpoint of state.endpoints.values()) {
    for (const queue of QUEUES) evictOverdueOf(state, endpoint, queue, beforeMs);
  }
}

function evictOverdueOf(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
  beforeMs: number,
): void {
  for (;;) {
    const head = endpoint.waiting[queue].peek();
    if (!head || head.sinceMs >= beforeMs) return;
    const decision = decideForHead(state, endpoint, head.candidate);
    if (decision.kind !== 'wait' || waitsForPlaceOrCpu(state, endpoint, queue, decision.because)) {
      reschedule(state, endpoint);
      return;
    }
    takeHead(state, endpoint, queue);
    const { because } = decision;
    head.admit(applyDecision(state, endpoint, head.candidate, { kind: 'defer', because, inMs: 0 }));
  }
}

function waitsForPlaceOrCpu(
  state: QueueState,
  { waiting }: QueuedEndpoint,
  queue: QueueKind,
  because: Reason,
): boolean {
  if (because === 'busy') return true;
  return because === 'concurrency' && isDueToOverload(state, poolOf(queue), waiting[queue].size());
}

/**
 * Bounded for each call, so that evicted attempts have left before more of them do. A queue of 14,000
 * is shortened within some seconds, at ten calls a second.
 */
const MAX_SURPLUS_PER_CALL = 250;

/**
 * When memory is so short that soon nothing more is read, evicts the newest attempts of endpoints
 * that cannot take their load. Otherwise the queue of one endpoint, admitted while there was memory,
 * would stop all other endpoints from being read for as long as it lasts.
 */
function evictSurplus(state: QueueState): void {
  if (state.maxWaitMs() > MIN_WAIT_MS) return;
  let left = MAX_SURPLUS_PER_CALL;
  for (const endpoint of state.endpoints.values()) {
    for (const queue of QUEUES) left -= evictNewest(state, endpoint, queue, left);
    if (left === 0) return;
  }
}

/** Returns how many were evicted. */
function evictNewest(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
  atMost: number,
): number {
  const waiting = endpoint.waiting[queue];
  for (let evicted = 0; evicted < atMost; evicted += 1) {
    const newest = waiting.peekLast();
    const ahead = waiting.size() - 1;
    if (!newest || ahead === 0) return evicted;
    const position = { ahead, isWaiting: true, hasPlace: true };
    const decision = decideFor(state, endpoint, newest.candidate, position);
    if (decision.kind !== 'defer') return evicted;
    waiting.pop();
    state.waiting[poolOf(queue)] -= 1;
    newest.admit(applyDecision(state, endpoint, newest.candidate, decision));
  }
  return atMost;
}

/** Evicts every waiting attempt, whatever the gate says. */
function evictAll(state: QueueState): void {
  for (const endpoint of state.endpoints.values()) {
    for (const queue of QUEUES) {
      for (const { candidate, admit } of takeAll(state, endpoint, queue)) {
        admit(refuseWait(state, endpoint, candidate, CLOSING));
      }
    }
    updateHeads(state, endpoint);
  }
}

function* takeAll(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
): Iterable<WaitingAttempt> {
  for (;;) {
    if (endpoint.waiting[queue].size() === 0) return;
    const head = takeHead(state, endpoint, queue);
    if (head) yield head;
  }
}

/** Beyond this many, an endpoint is forgotten as soon as it is idle, unless it has a hold or a pace. */
export const MAX_IDLE_ENDPOINTS = 10_000;
/** What one endpoint takes in memory. */
export const ENDPOINT_BYTES = 1_024;
/** An idle endpoint is remembered for this long. */
const KEPT_IDLE_MS = 60_000;

function forgetIdle(state: QueueState): void {
  const nowMs = state.monotonicMs();
  for (const endpoint of state.endpoints.values()) {
    if (isForgettable(endpoint, nowMs)) state.endpoints.delete(endpoint.webhookId);
  }
  if (state.hosts.size > 0) forgetIdleHosts(state, nowMs);
}

/** A host for which attempts wait is kept: otherwise they and the attempts that arrive would have a pace each. */
function forgetIdleHosts({ endpoints, hosts, nowMs: epochMs }: QueueState, nowMs: number): void {
  const awaited = new Set<HostPace>();
  for (const endpoint of endpoints.values()) {
    if (endpoint.host && waitingOf(endpoint) > 0) awaited.add(endpoint.host);
  }
  for (const [key, host] of hosts) {
    if (!awaited.has(host) && isHostIdle(host, nowMs, epochMs())) hosts.delete(key);
  }
}

function isForgettable(endpoint: QueuedEndpoint, nowMs: number): boolean {
  const { holdUntilMs, nextPacedMs, lastEndMs } = endpoint;
  if (!isIdle(endpoint) || isSlow(endpoint, nowMs)) return false;
  return Math.max(holdUntilMs, nextPacedMs, lastEndMs + KEPT_IDLE_MS) <= nowMs;
}

/** Forgets this endpoint at once when there are too many and nothing about it must be kept. */
function forgetIfTooMany({ endpoints, monotonicMs }: QueueState, endpoint: QueuedEndpoint): void {
  if (endpoints.size <= MAX_IDLE_ENDPOINTS || !isIdle(endpoint)) return;
  if (Math.max(endpoint.holdUntilMs, endpoint.nextPacedMs) > monotonicMs()) return;
  endpoints.delete(endpoint.webhookId);
}

/**
 * Marks the attempts that are overdue, which makes their endpoints slow and empties the fast queues of
 * those.
 */
function markSlow(state: QueueState): void {
  const nowMs = state.stallFreeMs();
  // In the order in which they started: the first one that is not overdue ends the search.
  for (const attempt of state.requests) {
    if (!isOverdue(nowMs - (attempt.startedStallFreeMs ?? nowMs))) break;
    if (!attempt.isOverdue && !attempt.isOfFormerUrl) markOverdue(state, attempt);
  }
}

function markOverdue(state: QueueState, attempt: RunningAttempt): void {
  const { endpoint, queue } = attempt;
  attempt.isOverdue = true;
  endpoint.overdue += 1;
  if (queue !== 'slow') countSlowFast(state, attempt);
  reschedule(state, endpoint);
}
