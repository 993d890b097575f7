import type { PayloadMemory } from '../payloads.ts';
import { AttemptSlots, type SlotDeps } from './attempt-slots.ts';
import { type Endpoint, type HandedOverEndpoint, spacingMs } from './endpoint.ts';
import {
  type Admission,
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
  type QueueKind,
  type Reason,
  reservationOf,
} from './gate.ts';
import type { Handover } from './handover.ts';
import { reserveHostStart } from './host-pace.ts';
import {
  hasChoice,
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
import { RememberedEndpoints, type RememberingDeps } from './remembered-endpoints.ts';

export type QueueLimits = SlotDeps['limits'] &
  RememberingDeps['limits'] & {
    /** Attempts that start in one iteration of the event loop. */
    startsPerLoop: Record<Pool, number>;
  };

export interface QueueDeps extends SlotDeps, RememberingDeps {
  limits: QueueLimits;
  /** How long an attempt may wait in memory for its endpoint now, in milliseconds. */
  maxWaitMs: () => number;
  /** True while this process has no CPU time left. */
  isOverloaded: () => boolean;
  /** Called for each attempt that arrives: its circuit must be known before the gate decides. */
  onArrival: (candidate: Candidate) => void;
  circuitOf: (candidate: Candidate) => CircuitView;
  payloads: Pick<PayloadMemory, 'hasRoom' | 'reserve' | 'onFreed'>;
  handover: Pick<Handover, 'pausedUntilMs' | 'learned' | 'reportPause'>;
  /** Calls `act` in the next iteration of the event loop. */
  inNextLoop: (act: () => void) => void;
  /** Calls `wake` after this time. Returns a function that cancels the timer. */
  wakeAfter: (ms: number, wake: () => void) => () => void;
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
/** The first attempt of a queue. Whether a slot is free is checked when its endpoint is next in the order of its pool. */
const HEAD: QueuePosition = { ahead: 0, isWaiting: true };
const CLOSING: Decision = { kind: 'wait', because: 'busy', wakeInMs: Infinity };

/**
 * Every endpoint has queues of its own, and free slots go round between companies and their
 * endpoints. The gate decides whether an attempt is made, waits or leaves.
 */
export class Queues {
  readonly #deps: QueueDeps;
  readonly #remembered: RememberedEndpoints;
  /** The endpoints with attempts that wait, and some whose last one has left since the last tick. */
  readonly #withWaiting = new Set<QueuedEndpoint>();
  readonly #slots: AttemptSlots;
  readonly #waiting: Record<Pool, number> = { fast: 0, slow: 0 };
  /** Attempts that may still start in this iteration of the event loop. */
  #startsLeft: Record<Pool, number>;
  #isNextLoopScheduled = false;
  /** Endpoints of which an attempt could start if a slot were free. */
  readonly #order = ordersOfPools();
  /** Endpoints of which an attempt could start if there were memory for its payload. */
  readonly #awaitingMemory = ordersOfPools();
  #isClosed = false;

  constructor(deps: QueueDeps) {
    this.#deps = deps;
    this.#remembered = new RememberedEndpoints(deps, (endpoint) => {
      this.#onMoved(endpoint);
    });
    this.#slots = new AttemptSlots(deps, (endpoint) => {
      this.#reschedule(endpoint);
    });
    this.#startsLeft = { ...deps.limits.startsPerLoop };
    deps.payloads.onFreed(() => {
      this.#startWaiting();
    });
  }

  /** Requests under way. */
  running(): number {
    return this.#slots.running();
  }

  waiting(): number {
    return this.#waiting.fast + this.#waiting.slow;
  }

  /** True when all slots of the pool are taken and enough attempts wait to take them over. */
  isFull(pool: Pool): boolean {
    const slots = this.#deps.limits[pool];
    return !this.#slots.hasFree(pool) && this.#waiting[pool] >= slots / 2;
  }

  /** The remembered endpoints, by webhook id. */
  endpoints(): ReadonlyMap<string, Endpoint> {
    return this.#remembered.all();
  }

  /** Applies the pauses that former owners were asked for. */
  applyPauses(): void {
    this.#remembered.applyPauses();
  }

  /** Forgets idle endpoints of webhooks that this process does not own. */
  forgetOthers(isOwned: (webhookId: string) => boolean): void {
    this.#remembered.forgetOthers(isOwned);
  }

  /** Resolves when the attempt may be made, or must leave. */
  enter(candidate: Candidate): Promise<Admission> {
    const reading = this.#deps.handover.learned(candidate);
    if (!reading) return this.#enter(candidate, null);
    return reading.then((learned) => this.#enter(candidate, learned));
  }

  #enter(candidate: Candidate, learned: HandedOverEndpoint | null): Promise<Admission> {
    this.#deps.onArrival(candidate);
    const endpoint = this.#remembered.update(candidate, learned);
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
    this.#slots.markSlow();
    this.#evictOverdue();
    this.#evictSurplus();
    this.#remembered.forgetIdle(this.#withWaiting);
  }

  /** Whether a request is under way. */
  hasRequests(): boolean {
    return this.#slots.hasRequests();
  }

  /** Evicts every waiting attempt, whatever the gate says; from then on none may wait. */
  close(): void {
    this.#isClosed = true;
    for (const endpoint of this.#remembered.all().values()) {
      for (const queue of QUEUES) {
        while (endpoint.waiting[queue].size() > 0) this.#admitHead(endpoint, queue, CLOSING);
      }
      this.#updateHeads(endpoint);
    }
  }

  #onMoved(endpoint: QueuedEndpoint): void {
    this.#slots.movedToUrl(endpoint);
    // Attempts that wait for the pause of the former URL need not wait any longer.
    this.#deps.inNextLoop(() => {
      this.#reschedule(endpoint);
    });
  }

  /** True when a slot is free and this iteration of the event loop has starts left. */
  #mayStart(pool: Pool): boolean {
    return this.#slots.hasFree(pool) && this.#startsLeft[pool] > 0;
  }

  /** Returns the decision of the gate for one attempt, as things are now. */
  #decide(endpoint: QueuedEndpoint, candidate: Candidate, at = HEAD, hasFreeSlot = true): Decision {
    return decide(...viewsOf(endpoint, candidate, at, this.#deps), {
      hasFreeSlot,
      maySlowUseFast: this.#slots.maySlowUseFast(),
      maxWaitMs: this.#deps.maxWaitMs(),
      isOverloaded: this.#isDueToOverload(poolOf(candidate.queue), at.ahead),
    });
  }

  #isDueToOverload(pool: Pool, length: number): boolean {
    const waiting = this.#waiting[pool];
    const all = { slots: this.#deps.limits.fast, waiting, endpoints: this.#remembered.all().size };
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
        return { kind: 'slot', slot: this.#slots.take(endpoint, candidate, hasWaited) };
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
    this.#remembered.forgetIfTooMany(endpoint);
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
}
