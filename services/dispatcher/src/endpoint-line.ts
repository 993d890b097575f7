/** Which queue an attempt stands in: first attempts, retries, or what did not fit there. */
export type Lane = 'first' | 'retry' | 'slow';

export interface Waiting {
  sinceMs: number;
  answer: (turn: 'started' | 'no room') => void;
}

/** The attempts of one endpoint, under way and waiting. */
export interface Line {
  webhookId: string;
  running: Record<Lane, number>;
  waiting: Record<Lane, Waiting[]>;
  /** Of those under way, how many have taken too long already. */
  overdue: number;
  /** Until then (monotonic) it counts as slow, unless an attempt shows that it is not. */
  slowUntilMs: number;
  /** Mean duration of late, in milliseconds. */
  typicalMs: number;
  /** Turns up to here (milliseconds since 1970) are given to attempts that were put off. */
  bookedUntilMs: number;
}

/** An attempt under way for this long makes its endpoint a slow one. */
export const SLOW_MS = 1_000;
/** A slow endpoint without traffic is given another chance after this time. */
const FORGIVEN_MS = 60_000;
/** What was put off comes back at the earliest then. */
const BOOK_AHEAD_MS = 5_000;
/** Bounds of what waits for one endpoint in memory; the slow lane carries no payloads. */
const MAX_WAITING = { fast: 64, retry: 32, slow: 4_096 };
/** Nobody is let in who would wait for longer, as far as one can tell. */
const MAX_EXPECTED_WAIT_MS = 30_000;

export function createLine(webhookId: string): Line {
  return {
    webhookId,
    running: { first: 0, retry: 0, slow: 0 },
    waiting: { first: [], retry: [], slow: [] },
    ...{ overdue: 0, slowUntilMs: 0, typicalMs: 0, bookedUntilMs: 0 },
  };
}

export function isSlow({ overdue, slowUntilMs }: Line, monotonicMs: number): boolean {
  return overdue > 0 || slowUntilMs > monotonicMs;
}

export function isIdle({ running, waiting }: Line): boolean {
  return (
    running.first + running.retry + running.slow === 0 &&
    waiting.first.length + waiting.retry.length + waiting.slow.length === 0
  );
}

/**
 * Retries take at most half of an endpoint's concurrency, and what came over the slow lane is sure
 * of a quarter, so that no lane waits for another to run dry. A slow endpoint has one fast attempt.
 */
export function mayStart(line: Line, lane: Lane, perEndpoint: number, slow: boolean): boolean {
  const { running, waiting } = line;
  const fast = running.first + running.retry;
  if (fast + running.slow >= perEndpoint) return false;
  if (lane === 'slow') return true;
  if (slow && fast > 0) return false;
  if (lane === 'retry' && running.retry >= Math.ceil(perEndpoint / 2)) return false;
  return waiting.slow.length === 0 || fast < perEndpoint - Math.floor(perEndpoint / 4);
}

export function hasRoom(line: Line, lane: Lane, perEndpoint: number, slow: boolean): boolean {
  const { waiting } = line;
  if (lane === 'slow') {
    const expectedMs = waiting.slow.length * spacingMs(line, perEndpoint);
    return waiting.slow.length < MAX_WAITING.slow && expectedMs <= MAX_EXPECTED_WAIT_MS;
  }
  if (slow) return false;
  if (lane === 'retry' && waiting.retry.length >= MAX_WAITING.retry) return false;
  return waiting.first.length + waiting.retry.length < MAX_WAITING.fast;
}

/** The newest attempt to end decides whether the endpoint is slow. */
export function endAttempt(line: Line, durationMs: number, monotonicMs: number): void {
  line.typicalMs = line.typicalMs === 0 ? durationMs : line.typicalMs * 0.8 + durationMs * 0.2;
  line.slowUntilMs = durationMs >= SLOW_MS ? monotonicMs + FORGIVEN_MS : 0;
}

/** A turn behind those that wait here and those that were booked before. */
export function bookTurn(line: Line, perEndpoint: number, nowMs: number): number {
  const eachMs = spacingMs(line, perEndpoint);
  const aheadMs = Math.max(BOOK_AHEAD_MS, line.waiting.slow.length * eachMs);
  line.bookedUntilMs = Math.max(line.bookedUntilMs, nowMs + aheadMs) + eachMs;
  return line.bookedUntilMs;
}

/** How often a place comes free when all of them are taken. */
function spacingMs({ typicalMs }: Line, perEndpoint: number): number {
  return (typicalMs || SLOW_MS / 10) / perEndpoint;
}

/** Takes out whoever began to wait before this time. */
export function takeOut(line: Line, lane: Lane, beforeMs: number): Waiting[] {
  const waiting = line.waiting[lane];
  const staying = waiting.findIndex(({ sinceMs }) => sinceMs >= beforeMs);
  return waiting.splice(0, staying < 0 ? waiting.length : staying);
}
