import { walkInSlices } from '@posthorn/platform/async/loop.ts';
import type { PayloadMemory, ReservedPayload } from '../payloads.ts';
import type { ReportToCircuit } from './circuits.ts';
import type { LimitBounds } from './concurrency-limit.ts';
import {
  advancePace,
  type Endpoint,
  type HandedOverEndpoint,
  inherit,
  isOverdue,
  isSlow,
  learn,
  learnWithoutToken,
  runningOf,
  spacingMs,
} from './endpoint.ts';
import {
  type Admission,
  type AttemptReport,
  type Candidate,
  type CircuitView,
  decide,
  type Decision,
  type Deferral,
  expectedWaitMs,
  isQueueOfOverload,
  MAX_WAIT_MS,
  MIN_WAIT_MS,
  mustLeave,
  type Slot,
  type QueueKind,
  type Reason,
  reservationOf,
} from './gate.ts';
import type { Handover } from './handover.ts';
import { advanceHostPace, createHostPaces, type HostPaces, reserveHostStart } from './host-pace.ts';
import {
  circuitReportOf,
  createQueuedEndpoint,
  hasChoice,
  isForgettable,
  isIdle,
  isIdleWithoutLimit,
  moveToUrl,
  ordersOfPools,
  type Pool,
  poolOf,
  POOLS,
  type QueuedEndpoint,
  type QueuePosition,
  QUEUES,
  queuesInOrder,
  viewsOf,
  waitingOf,
} from './queued-endpoint.ts';

export interface QueueLimits {
  /** Attempts at once to one endpoint. */
  perEndpoint: LimitBounds;
  /** Attempts per second of one company to one host; 0 for no limit. */
  perHostPerSecond: number;
  /** Slots of this dispatcher for the first and retry queues of all endpoints. */
  fast: number;
  /** Slots of this dispatcher for the slow lane. */
  slow: number;
  /** Attempts that start in one iteration of the event loop. */
  startsPerLoop: Record<Pool, number>;
}

export interface QueueDeps {
  limits: QueueLimits;
  /** How long an attempt may wait in memory for its endpoint now, in milliseconds. */
  maxWaitMs: () => number;
  /** True while this process has no CPU time left. */
  isOverloaded: () => boolean;
  /** Called for each attempt that arrives: its circuit must be known before the gate decides. */
  onArrival: (candidate: Candidate) => void;
  circuitOf: (candidate: Candidate) => CircuitView;
  payloads: Pick<PayloadMemory, 'hasRoom' | 'reserve' | 'onFreed'>;
  /** Begins the attempt at its circuit. The returned function takes its report, or null. */
  beginAttempt: (candidate: Candidate) => ReportToCircuit;
  handover: Pick<Handover, 'pausedUntilMs' | 'learned' | 'reportPause'>;
  nowMs: () => number;
  /** For waits, holds and paces. */
  monotonicMs: () => number;
  /** For durations: leaves out the time in which the event loop was blocked, see createStallFreeClock. */
  stallFreeMs: () => number;
  /** Calls `act` in the next iteration of the event loop. */
  inNextLoop: (act: () => void) => void;
  /** Calls `wake` after this time. Returns a function that cancels the timer. */
  wakeAfter: (ms: number, wake: () => void) => () => void;
}

/** An attempt that has a slot. */
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
  /** It is counted in `#slowFast`. */
  isSlowFast: boolean;
  /** The URL was changed while its request was under way, so that its outcome says nothing of the new one. */
  isOfFormerUrl: boolean;
  isOver: boolean;
}

/** An attempt that is expected to wait longer drops its payload. For less it is not worth loading it again. */
const KEEP_PAYLOAD_MS = 1_000;
/** Fast once more at the end: when the queue of the slow lane is empty, its quarter is free for others. */
const SERVED: readonly Pool[] = ['fast', 'slow', 'fast'];
/**
 * Bounded for each tick, so that evicted attempts have left before more of them do. A queue of 14,000
 * is shortened within some seconds, at ten ticks a second.
 */
const MAX_SURPLUS_PER_TICK = 250;
/** Beyond this many, an endpoint is forgotten as soon as it is idle, unless it has a pause or a pace. */
export const MAX_IDLE_ENDPOINTS = 10_000;
/** The size of one endpoint in memory. */
export const ENDPOINT_BYTES = 1_024;

/** The first attempt of a queue. Whether a slot is free is checked when its endpoint is next in the order of its pool. */
const HEAD: QueuePosition = { ahead: 0, isWaiting: true };
const CLOSING: Decision = { kind: 'wait', because: 'busy', wakeInMs: Infinity };

/**
 * Every endpoint has queues of its own, and free slots go round between companies and their
 * endpoints. The gate decides whether an attempt is made, waits or leaves.
 */
export class Queues {
  readonly #deps: QueueDeps;
  readonly #endpoints = new Map<string, QueuedEndpoint>();
  readonly #walk = walkInSlices(this.#endpoints);
  /** The endpoints with attempts that wait, and some whose last one has left since the last tick. */
  readonly #withWaiting = new Set<QueuedEndpoint>();
  readonly #hosts: HostPaces;
  /** Requests under way, in the order in which they started. */
  readonly #requests = new Set<RunningAttempt>();
  readonly #taken: Record<Pool, number> = { fast: 0, slow: 0 };
  readonly #waiting: Record<Pool, number> = { fast: 0, slow: 0 };
  /** Attempts that may still start in this iteration of the event loop. */
  #startsLeft: Record<Pool, number>;
  #isNextLoopScheduled = false;
  /** Endpoints of which an attempt could start if a slot were free. */
  readonly #order = ordersOfPools();
  /** Endpoints of which an attempt could start if there were memory for its payload. */
  readonly #awaitingMemory = ordersOfPools();
  /** Fast slots of attempts that are overdue, or got them while their endpoint was slow. */
  #slowFast = 0;
  #isClosed = false;

  constructor(deps: QueueDeps) {
    this.#deps = deps;
    this.#hosts = createHostPaces(deps.limits.perHostPerSecond);
    this.#startsLeft = { ...deps.limits.startsPerLoop };
    deps.payloads.onFreed(() => {
      this.#startWaiting();
    });
  }

  /** Requests under way. */
  running(): number {
    return this.#requests.size;
  }

  waiting(): number {
    return this.#waiting.fast + this.#waiting.slow;
  }

  /** True when all slots of the pool are taken and enough attempts wait to take them over. */
  isFull(pool: Pool): boolean {
    const slots = this.#deps.limits[pool];
    return this.#taken[pool] >= slots && this.#waiting[pool] >= slots / 2;
  }

  /** The remembered endpoints, by webhook id. */
  endpoints(): ReadonlyMap<string, Endpoint> {
    return this.#endpoints;
  }

  /** Applies the pauses that former owners were asked for. */
  applyPauses(): void {
    for (const endpoint of this.#endpoints.values()) {
      const untilMs = this.#deps.handover.pausedUntilMs(endpoint);
      endpoint.pausedUntilMs = Math.max(endpoint.pausedUntilMs, untilMs);
    }
  }

  /** Forgets idle endpoints of webhooks that this process does not own. */
  forgetOthers(isOwned: (webhookId: string) => boolean): void {
    for (const endpoint of this.#endpoints.values()) {
      if (isIdle(endpoint) && !isOwned(endpoint.webhookId))
        this.#endpoints.delete(endpoint.webhookId);
    }
  }

  /** Resolves when the attempt may be made, or must leave. */
  enter(candidate: Candidate): Promise<Admission> {
    const reading = this.#deps.handover.learned(candidate);
    if (!reading) return this.#enter(candidate, null);
    return reading.then((learned) => this.#enter(candidate, learned));
  }

  #enter(candidate: Candidate, learned: HandedOverEndpoint | null): Promise<Admission> {
    this.#deps.onArrival(candidate);
    const endpoint = this.#update(candidate, learned);
    const { queue } = candidate;
    const waiting = endpoint.waiting[queue];
    const position = { ahead: waiting.size(), isWaiting: false };
    const hasFreeSlot = this.#mayStart(poolOf(queue));
    const decision = this.#decide(endpoint, candidate, position, hasFreeSlot);
    if (decision.kind !== 'wait' || this.#isClosed) {
      return Promise.resolve(this.#apply(endpoint, candidate, decision, false));
    }
    const waitMs = expectedWaitMs(...viewsOf(endpoint, candidate, position, this.#deps));
    if (waitMs > KEEP_PAYLOAD_MS) candidate.dropPayload();
    return new Promise((admit) => {
      waiting.push({ candidate, sinceMs: this.#deps.monotonicMs(), admit });
      this.#withWaiting.add(endpoint);
      this.#waiting[poolOf(queue)] += 1;
      // Its time may have come since the gate decided.
      if (position.ahead === 0) this.#reschedule(endpoint);
    });
  }

  /**
   * Marks endpoints that turned slow, evicts attempts that waited too long or that memory has no
   * capacity for, and forgets idle endpoints. To be called each 100 ms.
   */
  tick(): void {
    this.#markSlow();
    this.#evictOverdue();
    this.#evictSurplus();
    this.#forgetIdle();
  }

  /** Evicts every waiting attempt, whatever the gate says; from then on none may wait. */
  close(): void {
    this.#isClosed = true;
    for (const endpoint of this.#endpoints.values()) {
      for (const queue of QUEUES) {
        while (endpoint.waiting[queue].size() > 0) this.#admitHead(endpoint, queue, CLOSING);
      }
      this.#updateHeads(endpoint);
    }
  }

  /**
   * Returns the endpoint of the candidate, with the rate limit and the host that it has now. A new one is added with what
   * its former owner has learned.
   */
  #update(candidate: Candidate, learned: HandedOverEndpoint | null): QueuedEndpoint {
    const { perEndpoint } = this.#deps.limits;
    const { webhookId, url, rateLimitPerSecond } = candidate;
    let endpoint = this.#endpoints.get(webhookId);
    if (!endpoint) {
      endpoint = createQueuedEndpoint(candidate, perEndpoint);
      endpoint.pausedUntilMs = this.#deps.handover.pausedUntilMs(candidate);
      if (learned) inherit(endpoint, learned, perEndpoint, this.#deps.monotonicMs());
      this.#endpoints.set(webhookId, endpoint);
    }
    if (endpoint.url !== url) this.#moveTo(endpoint, url);
    endpoint.rateLimitPerSecond = rateLimitPerSecond;
    endpoint.host = this.#hosts.of(endpoint.hostKey);
    return endpoint;
  }

  /** A changed URL is another endpoint: the pause of the old one would keep it without attempts for an hour. */
  #moveTo(endpoint: QueuedEndpoint, url: string): void {
    moveToUrl(endpoint, url, this.#deps.limits.perEndpoint);
    endpoint.pausedUntilMs = this.#deps.handover.pausedUntilMs(endpoint);
    for (const attempt of this.#requests) {
      if (attempt.endpoint !== endpoint) continue;
      attempt.isOfFormerUrl = true;
      attempt.isOverdue = false;
    }
    // Attempts that wait for the pause of the former URL need not wait any longer.
    this.#deps.inNextLoop(() => {
      this.#reschedule(endpoint);
    });
  }

  /** True when a slot is free and this iteration of the event loop has starts left. */
  #mayStart(pool: Pool): boolean {
    return this.#taken[pool] < this.#deps.limits[pool] && this.#startsLeft[pool] > 0;
  }

  /** Returns the decision of the gate for one attempt, as things are now. */
  #decide(endpoint: QueuedEndpoint, candidate: Candidate, at = HEAD, hasFreeSlot = true): Decision {
    return decide(...viewsOf(endpoint, candidate, at, this.#deps), {
      hasFreeSlot,
      // Slow endpoints together hold at most a quarter of the fast slots.
      maySlowUseFast: this.#slowFast < this.#deps.limits.fast / 4,
      maxWaitMs: this.#deps.maxWaitMs(),
      isOverloaded: this.#isDueToOverload(poolOf(candidate.queue), at.ahead),
    });
  }

  #isDueToOverload(pool: Pool, length: number): boolean {
    const waiting = this.#waiting[pool];
    const all = { slots: this.#deps.limits.fast, waiting, endpoints: this.#endpoints.size };
    return this.#deps.isOverloaded() && isQueueOfOverload(length, all);
  }

  /** Applies a decision of the gate. The one place that does. */
  #apply(
    endpoint: QueuedEndpoint,
    candidate: Candidate,
    decision: Decision,
    hasWaited = true,
  ): Admission {
    switch (decision.kind) {
      case 'now':
        this.#countStart(poolOf(candidate.queue));
        return { kind: 'slot', slot: this.#takeSlot(endpoint, candidate, hasWaited) };
      case 'slow_lane':
        return { kind: 'slow_lane' };
      case 'wait':
        return this.#refuseWait(endpoint, candidate, decision.because);
      case 'defer': {
        const reservedAtMs = this.#reserve(endpoint, decision, candidate.reservedAtMs);
        return { kind: 'defer', because: decision.because, reservedAtMs };
      }
    }
  }

  /**
   * For an attempt that would have to wait in a dispatcher that stops. Another dispatcher reads the slow
   * lane at once; what must not go there is deferred.
   */
  #refuseWait(endpoint: QueuedEndpoint, candidate: Candidate, because: Reason): Admission {
    const { queue, rateLimitPerSecond } = candidate;
    if (queue !== 'slow' && rateLimitPerSecond === null) return { kind: 'slow_lane' };
    const reservedAtMs = this.#reserve(endpoint, { because: 'busy', inMs: 0 }, null);
    return { kind: 'defer', because, reservedAtMs };
  }

  /** Returns when a deferred attempt is to come again, in milliseconds since 1970, and counts that reservation. */
  #reserve(endpoint: QueuedEndpoint, deferral: Deferral, ownMs: number | null): number {
    const { host } = endpoint;
    const reservation = reservationOf(deferral, endpoint, {
      nowMs: this.#deps.nowMs(),
      ownMs,
      spacingMs: spacingMs(endpoint, this.#deps.monotonicMs()),
    });
    if (reservation.countedBy === 'circuit') endpoint.deferredByCircuit += 1;
    if (reservation.countedBy === 'endpoint') endpoint.bookedUntilMs = reservation.atMs;
    if (reservation.countedBy === 'host' && host) host.bookedUntilMs = reservation.atMs;
    return reservation.atMs;
  }

  /**
   * Of 2,000 attempts that come due together, each company starts some in each iteration of the event
   * loop. Between two iterations the process reads the responses that have come.
   */
  #countStart(pool: Pool): void {
    this.#startsLeft[pool] -= 1;
    if (this.#isNextLoopScheduled) return;
    this.#isNextLoopScheduled = true;
    this.#deps.inNextLoop(() => {
      this.#isNextLoopScheduled = false;
      this.#startsLeft = { ...this.#deps.limits.startsPerLoop };
      this.#startWaiting();
    });
  }

  /** To be called when something changed at the endpoint, or a slot came free. */
  #reschedule(endpoint: QueuedEndpoint): void {
    this.#updateHeads(endpoint);
    this.#startWaiting();
    this.#forgetIfTooMany(endpoint);
  }

  /**
   * Asks the gate for the first attempt of each queue of the endpoint. Those that must leave are
   * evicted. An endpoint with an attempt that may be made stands in the order of its pool, and one with an attempt that
   * lacks memory in the order of those.
   */
  #updateHeads(endpoint: QueuedEndpoint): void {
    const isReady: Record<Pool, boolean> = { fast: false, slow: false };
    const lacksMemory: Record<Pool, boolean> = { fast: false, slow: false };
    let wakeInMs = Infinity;
    for (const queue of QUEUES) {
      const decision = this.#evictHeads(endpoint, queue);
      if (decision?.kind === 'now') isReady[poolOf(queue)] = true;
      if (decision?.kind !== 'wait') continue;
      if (decision.because === 'memory') lacksMemory[poolOf(queue)] = true;
      if (decision.because === 'host') reserveHostStart(endpoint, this.#deps.monotonicMs());
      wakeInMs = Math.min(wakeInMs, decision.wakeInMs);
    }
    for (const pool of POOLS) {
      this.#order[pool][isReady[pool] ? 'add' : 'remove'](endpoint);
      this.#awaitingMemory[pool][lacksMemory[pool] ? 'add' : 'remove'](endpoint);
    }
    this.#setWake(endpoint, wakeInMs);
  }

  /** Returns the decision for the first attempt that stays; null when none does. */
  #evictHeads(endpoint: QueuedEndpoint, queue: QueueKind): Decision | null {
    for (;;) {
      const head = endpoint.waiting[queue].peek();
      if (!head) return null;
      const decision = this.#decide(endpoint, head.candidate);
      if (decision.kind === 'now' || decision.kind === 'wait') return decision;
      this.#admitHead(endpoint, queue, decision);
    }
  }

  /** Removes the first attempt of the queue, with this decision. */
  #admitHead(endpoint: QueuedEndpoint, queue: QueueKind, decision: Decision): void {
    const head = endpoint.waiting[queue].shift();
    this.#waiting[poolOf(queue)] -= 1;
    head?.admit(this.#apply(endpoint, head.candidate, decision));
  }

  #setWake(endpoint: QueuedEndpoint, inMs: number): void {
    const atMs = this.#deps.monotonicMs() + inMs;
    if (endpoint.cancelWake && endpoint.wakeAtMs <= atMs && inMs < Infinity) return;
    endpoint.cancelWake?.();
    endpoint.cancelWake = null;
    endpoint.wakeAtMs = atMs;
    if (inMs === Infinity) return;
    endpoint.cancelWake = this.#deps.wakeAfter(inMs, () => {
      endpoint.cancelWake = null;
      this.#reschedule(endpoint);
    });
  }

  #startWaiting(): void {
    for (const pool of SERVED) this.#startWaitingOf(pool);
  }

  /** Attempts that waited for memory go first: they were next before. */
  #startWaitingOf(pool: Pool): void {
    const { hasRoom } = this.#deps.payloads;
    while (this.#mayStart(pool)) {
      const endpoint = this.#awaitingMemory[pool].next(hasRoom) ?? this.#order[pool].next();
      if (!endpoint) return;
      this.#startNext(endpoint, pool);
      this.#updateHeads(endpoint);
    }
  }

  #startNext(endpoint: QueuedEndpoint, pool: Pool): void {
    if (hasChoice(endpoint, pool)) endpoint.choices += 1;
    for (const queue of queuesInOrder(endpoint, pool)) {
      const head = endpoint.waiting[queue].peek();
      const decision = head && this.#decide(endpoint, head.candidate);
      if (decision?.kind !== 'now') continue;
      this.#admitHead(endpoint, queue, decision);
      return;
    }
  }

  /**
   * Takes a slot at the endpoint and in its pool, memory for the payload, and one start of its pace, and begins the
   * attempt at its circuit.
   */
  #takeSlot(endpoint: QueuedEndpoint, candidate: Candidate, hasWaited: boolean): Slot {
    const { queue } = candidate;
    const nowMs = this.#deps.monotonicMs();
    const attempt: RunningAttempt = {
      endpoint,
      queue,
      reportToCircuit: this.#deps.beginAttempt(candidate),
      payload: candidate.hasPayload() ? null : this.#deps.payloads.reserve(endpoint.companyId),
      startedStallFreeMs: null,
      startedMs: 0,
      isOverdue: false,
      isSlowFast: false,
      isOfFormerUrl: false,
      isOver: false,
    };
    if (isSlow(endpoint, nowMs)) this.#countSlowFast(attempt);
    this.#taken[poolOf(queue)] += 1;
    endpoint.running[queue] += 1;
    endpoint.wasSlowLast = queue === 'slow';
    advancePace(endpoint, nowMs, waitingOf(endpoint) > 0);
    advanceHostPace(endpoint, nowMs);
    return {
      payload: attempt.payload,
      hasWaited,
      begin: () => this.#begin(attempt),
      end: (report) => this.#end(attempt, report),
    };
  }

  /** Counts a fast slot that a slow endpoint has, once. */
  #countSlowFast(attempt: RunningAttempt): void {
    if (attempt.queue === 'slow' || attempt.isSlowFast) return;
    attempt.isSlowFast = true;
    this.#slowFast += 1;
  }

  #begin(attempt: RunningAttempt): boolean {
    const nowMs = this.#deps.monotonicMs();
    if (attempt.endpoint.pausedUntilMs > nowMs) return false;
    // Begun again: the requests are kept in the order in which they started.
    this.#requests.delete(attempt);
    attempt.startedStallFreeMs = this.#deps.stallFreeMs();
    attempt.startedMs = nowMs;
    attempt.isOfFormerUrl = false;
    this.#requests.add(attempt);
    return true;
  }

  async #end(attempt: RunningAttempt, report: AttemptReport | null): Promise<void> {
    if (attempt.isOver) return;
    attempt.isOver = true;
    const { endpoint } = attempt;
    // Without a token the endpoint got nothing, and nothing is reported to its circuit.
    const shown = report?.outcome === 'token_failed' ? null : report;
    if (report) this.#learn(attempt, report);
    try {
      const nowMs = this.#deps.monotonicMs();
      await attempt.reportToCircuit(shown && circuitReportOf(endpoint, shown, nowMs));
    } finally {
      // Not earlier: an attempt that came meanwhile would take the slot of those that wait for it.
      this.#freeSlot(attempt);
      attempt.payload?.release();
      this.#reschedule(endpoint);
    }
  }

  #learn(attempt: RunningAttempt, report: AttemptReport): void {
    const { endpoint, startedStallFreeMs, startedMs, isOfFormerUrl } = attempt;
    const endedMs = this.#deps.monotonicMs();
    const stallFreeMs = this.#deps.stallFreeMs();
    const durationMs = stallFreeMs - (startedStallFreeMs ?? stallFreeMs);
    if (report.outcome === 'token_failed') {
      learnWithoutToken(endpoint, durationMs, endedMs);
      return;
    }
    if (startedStallFreeMs === null || isOfFormerUrl) return;
    const heldUntilMs = endpoint.pausedUntilMs;
    const running = runningOf(endpoint);
    const isLimited = waitingOf(endpoint) > 0;
    const observed = { ...report, startedMs, endedMs, durationMs, running, isLimited };
    learn(endpoint, observed, this.#deps.limits.perEndpoint);
    if (endpoint.pausedUntilMs > heldUntilMs) {
      this.#deps.handover.reportPause(endpoint, endpoint.pausedUntilMs - endedMs);
    }
  }

  #freeSlot(attempt: RunningAttempt): void {
    const { endpoint, queue, isOverdue, isSlowFast } = attempt;
    this.#requests.delete(attempt);
    this.#taken[poolOf(queue)] -= 1;
    endpoint.running[queue] -= 1;
    if (isOverdue) endpoint.overdue -= 1;
    if (isSlowFast) this.#slowFast -= 1;
  }

  /** Marks the attempts that are overdue, which makes their endpoints slow and empties the fast queues of those. */
  #markSlow(): void {
    const nowMs = this.#deps.stallFreeMs();
    // In the order in which they started: the first one that is not overdue ends the search.
    for (const attempt of this.#requests) {
      if (!isOverdue(nowMs - (attempt.startedStallFreeMs ?? nowMs))) break;
      if (attempt.isOverdue || attempt.isOfFormerUrl) continue;
      attempt.isOverdue = true;
      attempt.endpoint.overdue += 1;
      this.#countSlowFast(attempt);
      this.#reschedule(attempt.endpoint);
    }
  }

  /**
   * Defers attempts that have waited too long for their endpoint or for memory. Most endpoints have none that wait: to
   * visit all 2,000 in each tick took 11 % of the dispatcher at 300/s.
   */
  #evictOverdue(): void {
    const beforeMs = this.#deps.monotonicMs() - MAX_WAIT_MS;
    for (const endpoint of this.#withWaiting) {
      if (waitingOf(endpoint) === 0) this.#withWaiting.delete(endpoint);
      for (const queue of QUEUES) this.#evictOverdueOf(endpoint, queue, beforeMs);
    }
  }

  #evictOverdueOf(endpoint: QueuedEndpoint, queue: QueueKind, beforeMs: number): void {
    const waiting = endpoint.waiting[queue];
    for (;;) {
      const head = waiting.peek();
      if (!head || head.sinceMs >= beforeMs) return;
      const decision = this.#decide(endpoint, head.candidate);
      const isOverloaded = this.#isDueToOverload(poolOf(queue), waiting.size());
      if (decision.kind !== 'wait' || !mustLeave(decision.because, isOverloaded)) {
        this.#reschedule(endpoint);
        return;
      }
      this.#admitHead(endpoint, queue, { kind: 'defer', because: decision.because, inMs: 0 });
    }
  }

  /**
   * When memory is so short that soon nothing more is read, evicts the newest attempts of endpoints
   * that cannot take their load. Otherwise the queue of one endpoint, admitted while there was memory,
   * would stop all other endpoints from being read for as long as it lasts.
   */
  #evictSurplus(): void {
    if (this.#deps.maxWaitMs() > MIN_WAIT_MS) return;
    let left = MAX_SURPLUS_PER_TICK;
    for (const endpoint of this.#withWaiting) {
      for (const queue of QUEUES) left -= this.#evictNewest(endpoint, queue, left);
      if (left === 0) return;
    }
  }

  /** Returns how many were evicted. */
  #evictNewest(endpoint: QueuedEndpoint, queue: QueueKind, atMost: number): number {
    const waiting = endpoint.waiting[queue];
    for (let evicted = 0; evicted < atMost; evicted += 1) {
      const newest = waiting.peekLast();
      const ahead = waiting.size() - 1;
      if (!newest || ahead === 0) return evicted;
      const decision = this.#decide(endpoint, newest.candidate, { ahead, isWaiting: true });
      if (decision.kind !== 'defer') return evicted;
      waiting.pop();
      this.#waiting[poolOf(queue)] -= 1;
      newest.admit(this.#apply(endpoint, newest.candidate, decision));
    }
    return atMost;
  }

  #forgetIdle(): void {
    const nowMs = this.#deps.monotonicMs();
    this.#walk((endpoint) => {
      if (isForgettable(endpoint, nowMs)) this.#endpoints.delete(endpoint.webhookId);
    });
    const now = { monotonicMs: nowMs, epochMs: this.#deps.nowMs() };
    this.#hosts.forgetIdle(this.#withWaiting, now);
  }

  /** Forgets this endpoint at once when there are too many and nothing about it must be kept. */
  #forgetIfTooMany(endpoint: QueuedEndpoint): void {
    if (this.#endpoints.size <= MAX_IDLE_ENDPOINTS) return;
    if (!isIdleWithoutLimit(endpoint, this.#deps.monotonicMs())) return;
    this.#endpoints.delete(endpoint.webhookId);
  }
}
