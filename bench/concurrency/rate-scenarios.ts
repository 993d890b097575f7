import * as receivers from './receivers.ts';
import { busy, type Scenario } from './scenarios.ts';

interface Limited {
  ms?: number;
  retryAfterMs?: number;
  noise?: Scenario['noise'];
  /** The process of the receiver is busy as well. */
  isReceiverBusy?: boolean;
}

/** 600/s to a receiver that takes 300/s, scored from the second minute on. */
function limited(
  name: string,
  limiter: () => receivers.RateLimiter,
  { ms = 20, retryAfterMs = 1_000, noise, isReceiverBusy = false }: Limited = {},
): Scenario {
  return {
    name,
    offered: 600,
    possible: 300,
    seconds: 120,
    fromSecond: 60,
    receiver: (random) => {
      const inner = receivers.spreadLatency(ms, random);
      const receiver = receivers.limitedRate(limiter(), inner, retryAfterMs);
      return isReceiverBusy ? receivers.blockedAtTimes(receiver, random) : receiver;
    },
    ...(noise && { noise }),
  };
}

/** A 429 that has nothing to do with the rate: of one of many replicas, or of one of many users. */
function atRandom(share: number): Scenario {
  return {
    name: `429 for ${share * 100} % at random`,
    offered: 600,
    possible: 600 * (1 - share),
    seconds: 120,
    fromSecond: 60,
    receiver: (random) =>
      receivers.failingAtRandom(share, receivers.fixedLatency(50), random, '429'),
  };
}

/** The limit changes after a minute. */
function changedLimit(
  name: string,
  fromRate: number,
  toRate: number,
  fromSecond: number,
): Scenario {
  const limitedTo = (rate: number): receivers.Receiver =>
    receivers.limitedRate(receivers.fixedWindow(rate), receivers.fixedLatency(20), 1_000);
  return {
    name,
    offered: 400,
    possible: toRate,
    seconds: 240,
    fromSecond,
    receiver: () => receivers.changed(60_000, limitedTo(fromRate), limitedTo(toRate)),
  };
}

const { fixedWindow, slidingWindow, tokenBucket } = receivers;

/** Without `Retry-After`. */
const NO_RETRY_AFTER = { retryAfterMs: 0 };

/** As on one machine that is full. */
const BOTH_BUSY = { noise: busy, isReceiverBusy: true };

export const RATE_SCENARIOS: Scenario[] = [
  limited('300/s, fixed window', () => fixedWindow(300)),
  limited('300/s, fixed window, 200 ms', () => fixedWindow(300), { ms: 200 }),
  limited('300/s, sliding window', () => slidingWindow(300)),
  limited('300/s, sliding window, 200 ms', () => slidingWindow(300), { ms: 200 }),
  limited('300/s, bucket of 300', () => tokenBucket(300, 300)),
  limited('300/s, bucket of 30', () => tokenBucket(300, 30)),
  limited('300/s, bucket of 30, 200 ms', () => tokenBucket(300, 30), { ms: 200 }),
  limited('300/s, fixed window, Retry-After: 5', () => fixedWindow(300), { retryAfterMs: 5_000 }),
  limited('300/s, fixed window, no Retry-After', () => fixedWindow(300), NO_RETRY_AFTER),
  limited('300/s, sliding window, no Retry-After', () => slidingWindow(300), NO_RETRY_AFTER),
  limited('300/s, bucket of 300, no Retry-After', () => tokenBucket(300, 300), NO_RETRY_AFTER),
  limited('300/s, bucket of 30, no Retry-After', () => tokenBucket(300, 30), NO_RETRY_AFTER),
  limited('300/s, fixed window, own process busy', () => fixedWindow(300), { noise: busy }),
  limited('300/s, sliding window, own process busy', () => slidingWindow(300), { noise: busy }),
  limited('300/s, bucket of 30, own process busy', () => tokenBucket(300, 30), { noise: busy }),
  limited('300/s, fixed window, both busy', () => fixedWindow(300), BOTH_BUSY),
  limited('300/s, sliding window, both busy', () => slidingWindow(300), BOTH_BUSY),
  limited('300/s, bucket of 30, both busy', () => tokenBucket(300, 30), BOTH_BUSY),
  atRandom(0.001),
  atRandom(0.01),
  changedLimit('30/s, after 60 s 300/s', 30, 300, 60),
  changedLimit('300/s, after 60 s 30/s', 300, 30, 60),
];
