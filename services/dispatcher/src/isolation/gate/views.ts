/** Which queue of its endpoint an attempt stands in: first attempts, retries, or the slow lane. */
export type Lane = 'first' | 'retry' | 'slow';

/** One attempt that asks. All times are milliseconds from now. */
export interface AttemptView {
  lane: Lane;
  /** Until the turn it was given when it was deferred; 0 when that has come or there is none. */
  turnInMs: number;
  /** It was deferred before, or it waits here already: turns that were given since lie behind it. */
  isInFront: boolean;
  /** Attempts of its lane that stand in front of it. */
  ahead: number;
}

/** Its endpoint. All times are milliseconds from now. */
export interface EndpointView {
  circuit: CircuitView;
  isSlow: boolean;
  /** A webhook with a rate limit of its own stays out of the slow lane: two lanes could not keep one rate. */
  hasRateLimit: boolean;
  /** Until the end of the pause that it asked for; 0 when there is none. */
  holdInMs: number;
  /** Until its rate allows the next attempt; 0 when it does now. */
  paceInMs: number;
  /** Until the last turn that was given to a deferred attempt; 0 when all of them have come. */
  bookedInMs: number;
  running: Readonly<Record<Lane, number>>;
  /** Attempts that wait in the slow lane's queue. */
  waitingSlow: number;
  /** The attempt that was begun last came over the slow lane. */
  wasSlowLast: boolean;
  /** Attempts it may have at once. */
  concurrency: number;
  /** How often it can begin one when all places are taken, in milliseconds. */
  spacingMs: number;
}

export type CircuitView =
  | { kind: 'closed' }
  | { kind: 'open'; deferForMs: number }
  /** One attempt finds out whether the endpoint is well again. */
  | { kind: 'probing'; sinceMs: number; deferForMs: number };

/** The dispatcher itself. */
export interface DispatcherView {
  /** A place is free in the lane's pool. */
  hasPlace: boolean;
  /** Slow endpoints may have one more attempt on the fast side. */
  maySlowTry: boolean;
  /** How long an attempt may wait in memory for its endpoint. */
  maxWaitMs: number;
  /** This process cannot keep up: every endpoint looks slow, and that is not theirs. */
  isOverloaded: boolean;
}
