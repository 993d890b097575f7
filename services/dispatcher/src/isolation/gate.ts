import type { Outcome, Trigger } from '@posthorn/domain/delivery/delivery.ts';
import type { ReservedPayload } from '../payloads.ts';

/** Why an attempt cannot be made now. The closed set of labels of the metrics. */
export const REASONS = [
  // It was deferred, and the time of its reservation has not come.
  'turn',
  // The circuit of its endpoint is open, or a probe is under way.
  'circuit',
  // The endpoint takes a second or longer.
  'slow',
  // The endpoint asked for a pause (Retry-After).
  'hold',
  // The rate limit of the webhook, or the rate learned from its refusals.
  'pace',
  // The limit of attempts of its company to one host.
  'host',
  // All slots of the endpoint are taken.
  'concurrency',
  // Payloads of attempts under way fill the memory that its company may use, and its own is not loaded.
  'memory',
  // All slots of this dispatcher are taken, or other attempts of the queue are ahead.
  'busy',
] as const;

export type Reason = (typeof REASONS)[number];

/** Why an attempt is deferred: by the gate, or because our egress proxy failed its request. */
export const DEFERRAL_REASONS = [...REASONS, 'proxy'] as const;

export type DeferralReason = (typeof DEFERRAL_REASONS)[number];

export type Decision =
  | { kind: 'now' }
  /** `wakeInMs`: when time alone may change the decision; Infinity when only the end of an attempt can. */
  | { kind: 'wait'; because: Reason; wakeInMs: number }
  | { kind: 'slow_lane'; because: Reason }
  | ({ kind: 'defer' } & Deferral);

export interface Deferral {
  because: Reason;
  inMs: number;
}

/**
 * The one place that decides whether an attempt is made now, waits in memory, or leaves. An attempt
 * always waits for what is in our own power (no free slot in this process). It is moved or deferred
 * only because of what its endpoint cannot take, and for payloads.
 */
export function decide(
  attempt: AttemptView,
  endpoint: EndpointView,
  dispatcher: DispatcherView,
): Decision {
  return (
    byReservation(attempt, endpoint, dispatcher) ??
    byCircuit(endpoint.circuit) ??
    bySlowness(attempt, endpoint, dispatcher) ??
    byEndpoint(attempt, endpoint, dispatcher) ??
    byMemory(attempt, dispatcher) ??
    byDispatcher(attempt, dispatcher)
  );
}

/** Reservations keep the pace of a backlog. They are ignored once the endpoint is no longer paced. */
function byReservation(
  { reservedInMs }: AttemptView,
  { isPaced, pauseInMs, circuit }: EndpointView,
  { maxWaitMs }: DispatcherView,
): Decision | null {
  const isKept = isPaced || pauseInMs > 0 || circuit.kind !== 'closed';
  if (!isKept || isReservationNear(reservedInMs, maxWaitMs)) return null;
  return { kind: 'defer', because: 'turn', inMs: reservedInMs };
}

function byCircuit(circuit: CircuitView): Decision | null {
  if (circuit.kind === 'closed') return null;
  const waitMs = circuit.kind === 'probing' ? PROBE_WAIT_MS - circuit.sinceMs : 0;
  if (waitMs > 0) return { kind: 'wait', because: 'circuit', wakeInMs: waitMs };
  return { kind: 'defer', because: 'circuit', inMs: circuit.deferForMs };
}

/**
 * One attempt at a time stays outside the slow lane, to find out when the endpoint is fast again.
 * A webhook with a rate limit never uses the slow lane: while a consumer group rebalances, two
 * processes may serve the webhook, and could not keep one rate together. Its attempts stay outside
 * while slow endpoints may take more slots there: one at a time would be 0.8/s with responses of
 * 1.2 s, whatever its limit is.
 */
function bySlowness(
  { queue, ahead }: AttemptView,
  { isSlow, hasRateLimit, running }: EndpointView,
  { maySlowUseFast }: DispatcherView,
): Decision | null {
  if (!isSlow || queue === 'slow') return null;
  const mayStay = hasRateLimit || running.first + running.retry + ahead === 0;
  if (mayStay && maySlowUseFast) return null;
  return hasRateLimit
    ? { kind: 'defer', because: 'slow', inMs: 0 }
    : { kind: 'slow_lane', because: 'slow' };
}

/** The attempt waits while the expected wait is short, and is deferred otherwise. */
function byEndpoint(
  attempt: AttemptView,
  endpoint: EndpointView,
  { maxWaitMs, isOverloaded }: DispatcherView,
): Decision | null {
  const bottleneck = bottleneckOf(attempt, endpoint);
  if (!bottleneck) return null;
  const { because, wakeInMs } = bottleneck;
  if (isOverloaded && because === 'concurrency') return { kind: 'wait', because, wakeInMs };
  const expectedMs = expectedWaitMs(attempt, endpoint);
  if (expectedMs > longestWaitMs(attempt, maxWaitMs))
    return { kind: 'defer', because, inMs: expectedMs };
  return { kind: 'wait', because, wakeInMs };
}

function bottleneckOf(
  { queue }: AttemptView,
  endpoint: EndpointView,
): { because: Reason; wakeInMs: number } | null {
  const { pauseInMs, paceInMs, hostInMs } = endpoint;
  if (pauseInMs > 0) return { because: 'hold', wakeInMs: pauseInMs };
  if (!hasEndpointSlot(queue, endpoint)) return { because: 'concurrency', wakeInMs: Infinity };
  if (paceInMs > 0) return { because: 'pace', wakeInMs: paceInMs };
  if (hostInMs > 0) return { because: 'host', wakeInMs: hostInMs };
  return null;
}

/** Most of this memory is held by endpoints that are slow to answer, and they may be for long. */
const MEMORY_DEFERS_MS = 5_000;

/** An attempt that waits for memory holds no slot, so that others are made meanwhile. */
function byMemory({ lacksMemory }: AttemptView, { maxWaitMs }: DispatcherView): Decision | null {
  if (!lacksMemory) return null;
  // Soon nothing more would be read.
  return maxWaitMs <= MIN_WAIT_MS
    ? { kind: 'defer', because: 'memory', inMs: MEMORY_DEFERS_MS }
    : { kind: 'wait', because: 'memory', wakeInMs: Infinity };
}

function byDispatcher({ ahead }: AttemptView, { hasFreeSlot }: DispatcherView): Decision {
  return ahead > 0 || !hasFreeSlot
    ? { kind: 'wait', because: 'busy', wakeInMs: Infinity }
    : { kind: 'now' };
}

/** A waiting attempt delays the commit of its partition. */
export const MAX_WAIT_MS = 30_000;
/** The least, however little memory is left: a shorter wait says nothing about the endpoint. */
export const MIN_WAIT_MS = 1_000;
/** Between these shares of the memory budget the wait shrinks from the maximum to the minimum. */
const SHRINKS_FROM = 0.25;
const SHRINKS_TO = 0.75;
/** A deferred attempt that comes for its reservation finds a queue that new attempts may have filled. */
const FACTOR_FOR_DEFERRED = 1.5;
/** A healthy endpoint finishes its probe sooner, so that nothing has to be deferred meanwhile. */
export const PROBE_WAIT_MS = 500;
/** A reservation this near is waited for in memory. */
const MIN_NEAR_MS = 5_000;

/**
 * Returns how long, in milliseconds, an attempt may wait in memory for its endpoint when this share
 * of the memory budget is used. Endpoints that cannot take their own load give way first, down to one
 * second of it. Only then does the dispatcher stop reading.
 */
export function maxWaitMsAt(usedShare: number): number {
  const left = (SHRINKS_TO - usedShare) / (SHRINKS_TO - SHRINKS_FROM);
  return MIN_WAIT_MS + (MAX_WAIT_MS - MIN_WAIT_MS) * Math.min(1, Math.max(0, left));
}

/** Returns how long this attempt may wait, where a new one may wait for `maxWaitMs`. */
export function longestWaitMs({ precedesBooked }: AttemptView, maxWaitMs: number): number {
  return precedesBooked ? maxWaitMs * FACTOR_FOR_DEFERRED : maxWaitMs;
}

/** Earlier than that an attempt would find the queue full of later reservations, and be deferred again. */
export function isReservationNear(reservedInMs: number, maxWaitMs: number): boolean {
  return reservedInMs <= Math.max(MIN_NEAR_MS, maxWaitMs / 3);
}

/** Returns how long it takes until the attempt starts, as far as its endpoint alone decides that. */
export function expectedWaitMs(
  { ahead, precedesBooked }: AttemptView,
  { pauseInMs, paceInMs, hostInMs, bookedInMs, spacingMs }: EndpointView,
): number {
  // Turns are booked behind the attempts that wait in the queue, which must not count twice.
  const queueMs = Math.max(pauseInMs, paceInMs, hostInMs) + ahead * spacingMs;
  return Math.max(precedesBooked ? 0 : bookedInMs, queueMs);
}

/**
 * Returns whether a queue of this length is due to an overload of this process. Deferring its attempts would not help.
 * One that is longer than all slots together, and than twice the mean of all endpoints, is not: its
 * endpoint takes less than others. After an outage of Kafka every queue is long, and with eight endpoints
 * 189,000 deferrals were written for 82,000 attempts.
 */
export function isQueueOfOverload(
  length: number,
  { slots, waiting, endpoints }: { slots: number; waiting: number; endpoints: number },
): boolean {
  return length < Math.max(slots, (2 * waiting) / Math.max(1, endpoints));
}

/**
 * Returns whether an attempt has to leave that has waited for MAX_WAIT_MS for this reason: when it waits for its
 * endpoint, or for memory, which others may hold for long. It stays while it waits for a slot or CPU time of this
 * process.
 */
export function mustLeave(because: Reason, isOverloaded: boolean): boolean {
  return because !== 'busy' && !(because === 'concurrency' && isOverloaded);
}

/** A reservation, at an endpoint or at a host, is no earlier than this. */
export const BOOK_AHEAD_MS = 5_000;
/** The backlog of a dead endpoint comes back a hundred a second, not all at once. */
const SPREAD_MS = 10;
const MAX_SPREAD_MS = 30 * 60_000;

/** When a deferred attempt comes again, and what counts it, so that later ones come after it. */
interface Reservation {
  /** Milliseconds since 1970. */
  atMs: number;
  countedBy: 'endpoint' | 'host' | 'circuit' | null;
}

interface Booked {
  /** Turns up to here, in milliseconds since 1970, are booked. */
  bookedUntilMs: number;
}

/** The reservations of the attempts of an endpoint. */
interface Bookings extends Booked {
  /** Null without a limit of attempts to the host. `spacingMs`: between two reservations. */
  host: (Booked & { spacingMs: number }) | null;
  /** Attempts that the circuit has deferred since the last success. */
  deferredByCircuit: number;
}

/**
 * Returns the reservation of a deferred attempt. It comes after the attempts that wait and the reservations that were
 * made before, unless the circuit is open, memory was short, or the attempt keeps its own reservation (`ownMs`,
 * milliseconds since 1970). `spacingMs`: between two reservations at the endpoint.
 */
export function reservationOf(
  { because, inMs }: Deferral,
  { bookedUntilMs, host, deferredByCircuit }: Bookings,
  { nowMs, ownMs, spacingMs }: { nowMs: number; ownMs: number | null; spacingMs: number },
): Reservation {
  const earliestMs = nowMs + Math.max(BOOK_AHEAD_MS, inMs);
  // Not booked at the endpoint, which can take it.
  if (because === 'memory') return { atMs: earliestMs, countedBy: null };
  if (because === 'circuit') {
    const spreadMs = Math.min((deferredByCircuit + 1) * SPREAD_MS, MAX_SPREAD_MS);
    return { atMs: nowMs + Math.max(inMs, spreadMs), countedBy: 'circuit' };
  }
  if (ownMs !== null && ownMs > nowMs) return { atMs: ownMs, countedBy: null };
  if (because === 'host' && host) {
    const atMs = Math.max(host.bookedUntilMs, earliestMs) + host.spacingMs;
    return { atMs, countedBy: 'host' };
  }
  return { atMs: Math.max(bookedUntilMs, earliestMs) + spacingMs, countedBy: 'endpoint' };
}

/*
 * A free slot of the dispatcher goes to the company that has been without one for longest, then to
 * the webhook of that company (createPlaceOrder in platform/async/fair-queue.ts). Which queue of that
 * webhook goes next is decided here.
 */

/** While first attempts and retries of an endpoint both wait, one slot in four goes to a retry. */
const RETRY_EVERY = 4;

const FIRST_BEFORE_RETRY: readonly QueueKind[] = ['first', 'retry'];
const RETRY_BEFORE_FIRST: readonly QueueKind[] = ['retry', 'first'];

/** Returns the order of the two fast queues for the `choice`-th choice between them. */
export function fastQueuesInOrder(choice: number): readonly QueueKind[] {
  return choice % RETRY_EVERY === 0 ? RETRY_BEFORE_FIRST : FIRST_BEFORE_RETRY;
}

/**
 * Returns whether the endpoint has a free slot for an attempt of this queue. Retries take at most
 * half of the slots. The slow lane is guaranteed a quarter, so that no queue has to wait until
 * another one is empty.
 */
function hasEndpointSlot(
  queue: QueueKind,
  {
    running,
    waitingSlow,
    wasSlowLast,
    concurrency,
  }: Pick<EndpointView, 'running' | 'waitingSlow' | 'wasSlowLast' | 'concurrency'>,
): boolean {
  const fast = running.first + running.retry;
  if (fast + running.slow >= concurrency) return false;
  if (queue === 'slow') return true;
  if (queue === 'retry' && running.retry >= Math.ceil(concurrency / 2)) return false;
  return waitingSlow === 0 || fast < concurrency - reservedForSlow(concurrency, wasSlowLast);
}

/** With a single slot, the slow lane and the fast queues alternate. */
function reservedForSlow(concurrency: number, wasSlowLast: boolean): number {
  if (concurrency === 1) return wasSlowLast ? 0 : 1;
  return Math.max(1, Math.floor(concurrency / 4));
}

/** The queue of its endpoint that an attempt stands in: first attempts, retries, or the slow lane. */
export type QueueKind = 'first' | 'retry' | 'slow';

/** One attempt that asks for a slot. All times are milliseconds from now. */
export interface AttemptView {
  queue: QueueKind;
  /** Until its reservation; 0 when that has come or it was never deferred. */
  reservedInMs: number;
  /** True when it was deferred before or waits here already: reservations booked since then are later than it. */
  precedesBooked: boolean;
  /** How many attempts of its queue are ahead of it. */
  ahead: number;
  /** Its payload has to be loaded, and there is no memory for it. */
  lacksMemory: boolean;
}

/** Its endpoint. All times are milliseconds from now. */
export interface EndpointView {
  circuit: CircuitView;
  isSlow: boolean;
  /** The webhook has a rate limit of its own; it never uses the slow lane, see `bySlowness` in gate.ts. */
  hasRateLimit: boolean;
  /** Its attempts are spaced: by the webhook's limit, by a learned rate, or by reservations at its host. */
  isPaced: boolean;
  /** Until the pause that the endpoint asked for ends; 0 when there is none. */
  pauseInMs: number;
  /** Until its pace allows the next attempt; 0 when it does now. */
  paceInMs: number;
  /** Until the limit of attempts to its host allows the next one; 0 when it does now or there is none. */
  hostInMs: number;
  /** Until the last reservation of a deferred attempt; 0 when all of them have come. */
  bookedInMs: number;
  running: Readonly<Record<QueueKind, number>>;
  /** Attempts that wait in the queue of the slow lane. */
  waitingSlow: number;
  /** The attempt that was given a slot last came from the slow lane. */
  wasSlowLast: boolean;
  /** How many attempts it may have at once. */
  concurrency: number;
  /** The mean time between two starts while all slots are taken, in milliseconds. */
  spacingMs: number;
}

export type CircuitView =
  | { kind: 'closed' }
  | { kind: 'open'; deferForMs: number }
  /** A probe is under way. */
  | { kind: 'probing'; sinceMs: number; deferForMs: number };

/** The dispatcher itself. */
export interface DispatcherView {
  /** The pool of the attempt's queue has a free slot. */
  hasFreeSlot: boolean;
  /** Slow endpoints may take one more slot outside the slow lane. */
  maySlowUseFast: boolean;
  /** How long an attempt may wait in memory for its endpoint now. */
  maxWaitMs: number;
  /** This process cannot keep up, so that every endpoint looks slow through no fault of its own. */
  isOverloaded: boolean;
}

/** A due attempt that asks for a slot. */
export interface Candidate {
  webhookId: string;
  companyId: string;
  url: string;
  queue: QueueKind;
  trigger: Trigger;
  /** The webhook's own limit; null for none. */
  rateLimitPerSecond: number | null;
  /** When its reservation is, in milliseconds since 1970; null when it was never deferred. */
  reservedAtMs: number | null;
  /** Since when open circuits have deferred it, in milliseconds since 1970; null when none has. */
  deferredSinceMs: number | null;
  /** False when its payload has to be loaded. */
  hasPayload: () => boolean;
  /** Frees the payload. The attempt waits as ids, and its payload is loaded again before it is made. */
  dropPayload: () => void;
}

/** The right to make one attempt. It counts at the endpoint and in the pool of its queue. */
export interface Slot {
  /** The memory for its payload, which `end` releases; null when the candidate had its payload. */
  payload: Pick<ReservedPayload, 'load'> | null;
  /** False when it was free as soon as the attempt came: nothing can have changed since. */
  hasWaited: boolean;
  /**
   * Starts the request: from here on its duration counts for the endpoint. Returns false when the
   * endpoint has asked for a pause meanwhile; the attempt has to enter again. Called again, it starts
   * the request again: what the attempt did before does not count.
   */
  begin: () => boolean;
  /**
   * Frees the slot; null when nothing is to be learned. After `token_failed` the endpoint is slow when that took a
   * second or longer, and nothing else is learned.
   */
  end: (report: AttemptReport | null) => Promise<void>;
}

/** The outcome of an attempt for its endpoint, or that there was no token for it. */
export interface AttemptReport {
  outcome: Outcome;
  statusCode: number | null;
  /** The value of `Retry-After`, in milliseconds; null without one. Not every response with it asks for a pause. */
  retryAfterMs: number | null;
}

/** The decision for an attempt: it gets a slot, moves to the slow lane, or is deferred. */
export type Admission =
  | { kind: 'slot'; slot: Slot }
  | { kind: 'slow_lane' }
  /** `reservedAtMs`: when the attempt comes again, in milliseconds since 1970. */
  | { kind: 'defer'; because: Reason; reservedAtMs: number };
