export interface Answer {
  status: 'success' | '429' | '503' | 'no connection';
  /** Until the response is sent, in milliseconds. */
  afterMs: number;
  /** Requests ahead of it that wait themselves. */
  queued: number;
  /** The hold that it asks for, in milliseconds; 0 without `Retry-After`. */
  retryAfterMs: number;
}

/** A receiver in virtual time. `running` counts its requests under way, this one included. */
export type Receiver = (nowMs: number, running: number) => Answer;

/** Returns true when a request is admitted. */
export type RateLimiter = (nowMs: number) => boolean;

function success(afterMs: number, queued = 0): Answer {
  return { status: 'success', afterMs, queued, retryAfterMs: 0 };
}

/** Refusals are quick, however long the work takes. */
function refusal(status: Exclude<Answer['status'], 'success'>, retryAfterMs = 0): Answer {
  return { status, afterMs: 2, queued: 0, retryAfterMs };
}

/** At least half of the mean, plus an exponential rest, as in most services. */
function spread(meanMs: number, random: () => number): number {
  return meanMs * (0.5 - 0.5 * Math.log(1 - random()));
}

export function fixedLatency(ms: number): Receiver {
  return () => success(ms);
}

export function spreadLatency(meanMs: number, random: () => number): Receiver {
  return () => success(spread(meanMs, random));
}

/** `count` workers with one queue, first come, first served. */
export function workers(count: number, meanMs: number, random: () => number): Receiver {
  const freeAtMs = Array<number>(count).fill(0);
  return (nowMs, running) => {
    const next = freeAtMs.indexOf(Math.min(...freeAtMs));
    const endMs = Math.max(nowMs, freeAtMs[next] ?? 0) + spread(meanMs, random);
    freeAtMs[next] = endMs;
    return success(endMs - nowMs, Math.max(0, running - count));
  };
}

/** Twice the latency with `atTwice` requests at once, five times the latency with twice as many. */
export function risingLatency(ms: number, atTwice: number): Receiver {
  return (_, running) => success(ms * (1 + (running / atTwice) ** 2));
}

/** Responds with 503 above this many requests at once. */
export function boundedConcurrency(places: number, inner: Receiver): Receiver {
  return (nowMs, running) => (running > places ? refusal('503') : inner(nowMs, running));
}

export function limitedRate(limiter: RateLimiter, inner: Receiver, retryAfterMs: number): Receiver {
  return (nowMs, running) =>
    limiter(nowMs) ? inner(nowMs, running) : refusal('429', retryAfterMs);
}

/** Refuses everything between two times. */
export function down(
  fromMs: number,
  toMs: number,
  status: '503' | 'no connection',
  inner: Receiver,
): Receiver {
  return (nowMs, running) =>
    nowMs >= fromMs && nowMs < toMs ? refusal(status) : inner(nowMs, running);
}

/** Shares a machine that is busy at times: requests that begin in one of these periods take `extraMs` longer. */
export function busyAtTimes(
  { everyMs, forMs, extraMs }: { everyMs: number; forMs: number; extraMs: number },
  inner: Receiver,
): Receiver {
  return (nowMs, running) => {
    const answer = inner(nowMs, running);
    const isBusy = nowMs % everyMs >= everyMs - forMs;
    return isBusy ? { ...answer, afterMs: answer.afterMs + extraMs } : answer;
  };
}

/**
 * A receiver whose process is blocked for 20 to 120 ms, three times in two seconds on average. What arrives meanwhile is
 * handled together afterwards.
 */
export function blockedAtTimes(inner: Receiver, random: () => number): Receiver {
  let [fromMs, toMs] = [0, 0];
  return (nowMs, running) => {
    while (toMs < nowMs) {
      fromMs = toMs + random() * 1_200;
      toMs = fromMs + 20 + random() * 100;
    }
    const handledMs = Math.max(nowMs, nowMs > fromMs ? toMs : nowMs);
    const answer = inner(handledMs, running);
    return { ...answer, afterMs: answer.afterMs + handledMs - nowMs };
  };
}

export function changed(atMs: number, before: Receiver, after: Receiver): Receiver {
  return (nowMs, running) => (nowMs < atMs ? before : after)(nowMs, running);
}

/** Responds with 503 or 429 to a share of the requests, at random. */
export function failingAtRandom(
  share: number,
  inner: Receiver,
  random: () => number,
  status: '503' | '429' = '503',
): Receiver {
  return (nowMs, running) => (random() < share ? refusal(status) : inner(nowMs, running));
}

export function fixedWindow(perSecond: number): RateLimiter {
  let [second, taken] = [-1, 0];
  return (nowMs) => {
    const current = Math.floor(nowMs / 1_000);
    if (current !== second) [second, taken] = [current, 0];
    taken += 1;
    return taken <= perSecond;
  };
}

export function slidingWindow(perSecond: number): RateLimiter {
  let admittedMs: number[] = [];
  return (nowMs) => {
    if ((admittedMs[0] ?? nowMs) <= nowMs - 1_000) {
      admittedMs = admittedMs.filter((ms) => ms > nowMs - 1_000);
    }
    if (admittedMs.length >= perSecond) return false;
    admittedMs.push(nowMs);
    return true;
  };
}

export function tokenBucket(perSecond: number, burst: number): RateLimiter {
  let [tokens, atMs] = [burst, 0];
  return (nowMs) => {
    tokens = Math.min(burst, tokens + ((nowMs - atMs) * perSecond) / 1_000);
    atMs = nowMs;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  };
}
