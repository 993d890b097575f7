import type { PayloadMemory, ReservedPayload } from '../payloads.ts';
import type { ReportToCircuit } from './circuits.ts';
import type { LimitBounds } from './concurrency-limit.ts';
import { advancePace, isOverdue, isSlow, learn, learnWithoutToken, runningOf } from './endpoint.ts';
import type { AttemptReport, Candidate, QueueKind, Slot } from './gate.ts';
import type { Handover } from './handover.ts';
import { advanceHostPace } from './host-pace.ts';
import {
  circuitReportOf,
  type Pool,
  poolOf,
  type QueuedEndpoint,
  waitingOf,
} from './queued-endpoint.ts';

export interface SlotDeps {
  limits: {
    /** Attempts at once to one endpoint. */
    perEndpoint: LimitBounds;
    /** Slots of this dispatcher for the first and retry queues of all endpoints. */
    fast: number;
    /** Slots of this dispatcher for the slow lane. */
    slow: number;
  };
  payloads: Pick<PayloadMemory, 'reserve'>;
  /** Begins the attempt at its circuit. The returned function takes its report, or null. */
  beginAttempt: (candidate: Candidate) => ReportToCircuit;
  handover: Pick<Handover, 'reportPause'>;
  /** For waits, holds and paces. */
  monotonicMs: () => number;
  /** For durations: leaves out the time in which the event loop was blocked, see createStallFreeClock. */
  stallFreeMs: () => number;
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

/** The slots of this dispatcher, and the attempts that have one: from the start of each to its report. */
export class AttemptSlots {
  readonly #deps: SlotDeps;
  /** Called when something changed at the endpoint, or one of its slots came free. */
  readonly #reschedule: (endpoint: QueuedEndpoint) => void;
  /** Requests under way, in the order in which they started. */
  readonly #requests = new Set<RunningAttempt>();
  readonly #taken: Record<Pool, number> = { fast: 0, slow: 0 };
  /** Fast slots of attempts that are overdue, or got them while their endpoint was slow. */
  #slowFast = 0;

  constructor(deps: SlotDeps, reschedule: (endpoint: QueuedEndpoint) => void) {
    this.#deps = deps;
    this.#reschedule = reschedule;
  }

  /** Requests under way. */
  running(): number {
    return this.#requests.size;
  }

  hasFree(pool: Pool): boolean {
    return this.#taken[pool] < this.#deps.limits[pool];
  }

  /** Slow endpoints together hold at most a quarter of the fast slots. */
  maySlowUseFast(): boolean {
    return this.#slowFast < this.#deps.limits.fast / 4;
  }

  /**
   * Takes a slot at the endpoint and in its pool, memory for the payload, and one start of its pace, and begins the
   * attempt at its circuit.
   */
  take(endpoint: QueuedEndpoint, candidate: Candidate, hasWaited: boolean): Slot {
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

  /** The outcomes of requests that are under way say nothing of the new URL of the endpoint. */
  movedToUrl(endpoint: QueuedEndpoint): void {
    for (const attempt of this.#requests) {
      if (attempt.endpoint !== endpoint) continue;
      attempt.isOfFormerUrl = true;
      attempt.isOverdue = false;
    }
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

  hasRequests(): boolean {
    return this.#requests.size > 0;
  }

  /** Marks the attempts that are overdue, which makes their endpoints slow and empties the fast queues of those. */
  markSlow(): void {
    if (!this.hasRequests()) return;
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
}
