/** Which queue of its endpoint an attempt stands in: first attempts, retries, or the slow lane. */
export type QueueKind = 'first' | 'retry' | 'slow';

/** One attempt that asks for a place. All times are milliseconds from now. */
export interface AttemptView {
  queue: QueueKind;
  /** Until the turn that it was given when it was deferred; 0 when that has come or there is none. */
  turnInMs: number;
  /** True when it was deferred before or waits here already: turns booked since then are later than it. */
  precedesBooked: boolean;
  /** How many attempts of its queue are ahead of it. */
  ahead: number;
  /** Its payload has to be loaded, and there is no memory for it. */
  lacksMemory: boolean;
  /** For how long its company has been suspended; null when it is not. */
  suspendedForMs: number | null;
}

/** Its endpoint. All times are milliseconds from now. */
export interface EndpointView {
  circuit: CircuitView;
  isSlow: boolean;
  /** The webhook has a rate limit of its own; it never uses the slow lane, see `bySlowness` in gate.ts. */
  hasRateLimit: boolean;
  /** Its attempts are spaced: by the webhook's limit, by a learned rate, or by turns at its host. */
  isPaced: boolean;
  /** Until the hold that the endpoint asked for ends; 0 when there is none. */
  holdInMs: number;
  /** Until its pace allows the next attempt; 0 when it does now. */
  paceInMs: number;
  /** Until the limit of attempts to its host allows the next one; 0 when it does now or there is none. */
  hostInMs: number;
  /** Until the last turn that was given to a deferred attempt; 0 when all of them have come. */
  bookedInMs: number;
  running: Readonly<Record<QueueKind, number>>;
  /** Attempts that wait in the queue of the slow lane. */
  waitingSlow: number;
  /** The attempt that was given a place last came from the slow lane. */
  wasSlowLast: boolean;
  /** How many attempts it may have at once. */
  concurrency: number;
  /** The mean time between two starts while all places are taken, in milliseconds. */
  spacingMs: number;
}

export type CircuitView =
  | { kind: 'closed' }
  | { kind: 'open'; deferForMs: number }
  /** A probe is under way. */
  | { kind: 'probing'; sinceMs: number; deferForMs: number };

/** The dispatcher itself. */
export interface DispatcherView {
  /** The pool of the attempt's queue has a free place. */
  hasPlace: boolean;
  /** Slow endpoints may take one more place outside the slow lane. */
  maySlowUseFast: boolean;
  /** How long an attempt may wait in memory for its endpoint now. */
  maxWaitMs: number;
  /** This process cannot keep up, so that every endpoint looks slow through no fault of its own. */
  isOverloaded: boolean;
}
