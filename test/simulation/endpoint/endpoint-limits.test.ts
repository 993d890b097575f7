import { describe, expect, test } from '@jest/globals';
import { createRandom } from '../../support/samples/seeded-random.ts';
import * as receivers from './receivers.ts';
import { simulateEndpoint, type Load, type Second } from './simulate-endpoint.ts';

/**
 * The concurrency limit and the learned rate against receivers in virtual time: the numbers are the same on every
 * machine. docs/decisions/0020-adaptive-concurrency.md compares the same receivers with other rules.
 */
interface Trial {
  receiver: (random: () => number) => receivers.Receiver;
  /** Attempts per second that become due. */
  offered?: number;
  /** Successes per second that are possible; what is offered by default. */
  possible?: number;
  seconds?: number;
  /** The score counts the seconds from this one on. */
  fromSecond?: number;
  /** The delays of our own process; those of an idle one by default. */
  noise?: (random: () => number) => Load['seenAt'];
  isRateLearned?: boolean;
}

interface Score {
  /** Successes divided by the possible successes, 0 to 1. */
  throughput: number;
  /** Seconds until three in a row reach 95 % of the possible successes. */
  secondsTo95: number;
  longestQueue: number;
  /** Refused requests divided by sent requests, 0 to 1. */
  refused: number;
  mostWaiting: number;
}

function scored({ receiver, offered = 900, possible = offered, ...rest }: Trial): Score {
  const { seconds = 60, fromSecond = 0, noise = quiet, isRateLearned = true } = rest;
  const random = createRandom(1);
  const run = simulateEndpoint({
    receiver: receiver(random),
    offered: () => offered,
    seconds,
    seenAt: noise(random),
    isRateLearned,
  });
  return scoreOf(run.seconds.slice(fromSecond), possible);
}

function scoreOf(seconds: readonly Second[], possible: number): Score {
  const total = (each: (second: Second) => number): number =>
    seconds.reduce((sum, second) => sum + each(second), 0);
  const reached = seconds.findIndex((_, index) =>
    seconds.slice(index, index + 3).every(({ succeeded }) => succeeded >= possible * 0.95),
  );
  const sent = Math.max(
    1,
    total((second) => second.sent),
  );
  return {
    throughput: total(({ succeeded }) => succeeded) / (possible * seconds.length),
    secondsTo95: reached < 0 ? Infinity : reached,
    longestQueue: Math.max(...seconds.map(({ longestQueue }) => longestQueue)),
    refused: total(({ refused }) => refused) / sent,
    mostWaiting: Math.max(...seconds.map(({ waiting }) => waiting)),
  };
}

/** The delays of an idle process: a fraction of a millisecond, seldom a few milliseconds. */
function quiet(random: () => number): Load['seenAt'] {
  return (ms) => ms - Math.log(1 - random()) * 0.5;
}

/**
 * The delays of a process on two busy cores: each response is seen 1 to 40 ms late, and the event loop is blocked for
 * 50 to 150 ms about once a second. What arrived meanwhile is seen together afterwards.
 */
function busy(random: () => number): Load['seenAt'] {
  let [fromMs, toMs] = [0, 0];
  return (ms) => {
    while (toMs < ms) {
      fromMs = toMs + random() * 2_000;
      toMs = fromMs + 50 + random() * 100;
    }
    return (ms > fromMs ? toMs : ms) + 1 + random() ** 3 * 39;
  };
}

const { fixedLatency, spreadLatency, failingAtRandom, boundedConcurrency } = receivers;

describe('the concurrency limit', () => {
  test.each<[string, Trial]>([
    ['20 ms', { offered: 1_500, seconds: 30, receiver: () => fixedLatency(20) }],
    ['200 ms', { seconds: 30, receiver: () => fixedLatency(200) }],
    [
      '200 ms, spread, own process busy',
      { receiver: (random) => spreadLatency(200, random), noise: busy },
    ],
    ['1 ms, own process busy', { offered: 1_500, receiver: () => fixedLatency(1), noise: busy }],
  ])('reaches the full rate of an endpoint of %s within two seconds', (_, trial) => {
    const { throughput, secondsTo95 } = scored(trial);
    expect(throughput).toBeGreaterThan(0.99);
    expect(secondsTo95).toBeLessThanOrEqual(2);
  });

  test.each([
    ['in each second', 30, { everyMs: 1_000, forMs: 300, extraMs: 200 }],
    ['at times', 120, { everyMs: 5_000, forMs: 500, extraMs: 200 }],
  ])('soon returns after a latency that no queue raised: busy %s', (_, seconds, busyness) => {
    const receiver = () => receivers.busyAtTimes(busyness, fixedLatency(200));
    const { throughput, mostWaiting } = scored({ seconds, receiver });
    expect(throughput).toBeGreaterThan(0.98);
    expect(mostWaiting).toBeLessThan(1_500);
  });

  test.each([
    [8, 50, { offered: 900, possible: 160, seconds: 120 }, 0.95, 32],
    [64, 50, { offered: 2_000, possible: 1_280 }, 0.95, 100],
    [400, 200, { offered: 3_000, possible: 2_000 }, 0.9, 150],
  ])('keeps %i workers of %i ms busy without a long queue', (count, ms, load, share, queue) => {
    const receiver = (random: () => number) => receivers.workers(count, ms, random);
    const { throughput, longestQueue } = scored({ ...load, fromSecond: 5, receiver });
    expect(throughput).toBeGreaterThan(share);
    expect(longestQueue).toBeLessThanOrEqual(queue);
  });

  test.each([
    [100, { offered: 3_000, possible: 2_000 }],
    [10, { offered: 1_000, possible: 200 }],
  ])('finds how many attempts at once are accepted: 503 above %i', (places, load) => {
    const receiver = (random: () => number) =>
      boundedConcurrency(places, spreadLatency(50, random));
    const { throughput, refused } = scored({ ...load, fromSecond: 5, receiver });
    expect(throughput).toBeGreaterThan(0.93);
    expect(refused).toBeLessThan(0.02);
  });

  test.each([
    [0.01, { seconds: 60, fromSecond: 5 }],
    [0.05, { seconds: 120, fromSecond: 60 }],
  ])('does not decrease for refusals that are unrelated to load: a share of %f', (share, load) => {
    const receiver = (random: () => number) => failingAtRandom(share, fixedLatency(200), random);
    const { throughput } = scored({ ...load, possible: 900 * (1 - share), receiver });
    expect(throughput).toBeGreaterThan(0.99);
  });

  test.each<[string, number, Trial]>([
    [
      'a restart with 503 for 5 s',
      5,
      { fromSecond: 25, receiver: () => receivers.down(20_000, 25_000, '503', fixedLatency(200)) },
    ],
    [
      'a restart without connections for 5 s',
      2,
      {
        fromSecond: 25,
        receiver: () => receivers.down(20_000, 25_000, 'no connection', fixedLatency(200)),
      },
    ],
    [
      'a latency that rises from 20 to 200 ms',
      5,
      {
        fromSecond: 20,
        receiver: () => receivers.changed(20_000, fixedLatency(20), fixedLatency(200)),
      },
    ],
  ])('recovers from %s within %i seconds', (_, seconds, trial) => {
    expect(scored(trial).secondsTo95).toBeLessThanOrEqual(seconds);
  });

  test('reaches nine tenths of an endpoint whose latency rises with the attempts at once', () => {
    const receiver = () => receivers.risingLatency(20, 50);
    const { throughput } = scored({ offered: 3_000, possible: 1_250, fromSecond: 5, receiver });
    expect(throughput).toBeGreaterThan(0.9);
  });
});

interface Limited {
  ms?: number;
  retryAfterMs?: number;
  /** Both our own process and that of the receiver are busy, as on one machine that is full. */
  areBothBusy?: boolean;
  isRateLearned?: boolean;
}

/** Scores 600/s to a receiver that accepts 300/s, from the second minute on. */
function scoredLimited(limiter: receivers.RateLimiter, limited: Limited = {}): Score {
  const { ms = 20, retryAfterMs = 1_000, areBothBusy = false, isRateLearned = true } = limited;
  return scored({
    offered: 600,
    possible: 300,
    seconds: 120,
    fromSecond: 60,
    receiver: (random) => {
      const receiver = receivers.limitedRate(limiter, spreadLatency(ms, random), retryAfterMs);
      return areBothBusy ? receivers.blockedAtTimes(receiver, random) : receiver;
    },
    noise: areBothBusy ? busy : quiet,
    isRateLearned,
  });
}

const { fixedWindow, slidingWindow, tokenBucket } = receivers;

/** The limit changes after a minute. */
function changedLimit(fromRate: number, toRate: number): Trial['receiver'] {
  const limitedTo = (rate: number): receivers.Receiver =>
    receivers.limitedRate(fixedWindow(rate), fixedLatency(20), 1_000);
  return () => receivers.changed(60_000, limitedTo(fromRate), limitedTo(toRate));
}

describe('the learned rate', () => {
  test.each<[string, receivers.RateLimiter, Limited]>([
    ['fixed window', fixedWindow(300), {}],
    ['sliding window, 200 ms', slidingWindow(300), { ms: 200 }],
    ['bucket of 300', tokenBucket(300, 300), {}],
    ['bucket of 30', tokenBucket(300, 30), {}],
    ['fixed window, no Retry-After', fixedWindow(300), { retryAfterMs: 0 }],
  ])('reaches nine tenths after a minute, with few refusals: %s', (_, limiter, limited) => {
    const { throughput, refused } = scoredLimited(limiter, limited);
    expect(throughput).toBeGreaterThan(0.9);
    expect(refused).toBeLessThan(0.005);
  });

  test.each([
    ['fixed window', fixedWindow(300), 0.85],
    ['sliding window', slidingWindow(300), 0.8],
  ])('reaches most of the limit on a full machine: %s', (_, limiter, share) => {
    const { throughput, refused } = scoredLimited(limiter, { areBothBusy: true });
    expect(throughput).toBeGreaterThan(share);
    expect(refused).toBeLessThan(0.005);
  });

  test.each([0.001, 0.01])(
    'does not fall for refusals that are unrelated to it: a share of %f',
    (share) => {
      const { throughput } = scored({
        offered: 600,
        possible: 600 * (1 - share),
        seconds: 120,
        fromSecond: 60,
        receiver: (random) => failingAtRandom(share, fixedLatency(50), random, '429'),
      });
      expect(throughput).toBeGreaterThan(0.99);
    },
  );

  test('finds a limit that was raised tenfold within two minutes', () => {
    const receiver = changedLimit(30, 300);
    const { secondsTo95 } = scored({
      offered: 400,
      possible: 300,
      seconds: 240,
      fromSecond: 60,
      receiver,
    });
    expect(secondsTo95).toBeLessThan(120);
  });

  test('follows a limit that was lowered to a tenth', () => {
    const receiver = changedLimit(300, 30);
    const { throughput, refused } = scored({
      offered: 400,
      possible: 30,
      seconds: 240,
      fromSecond: 60,
      receiver,
    });
    expect(throughput).toBeGreaterThan(0.9);
    expect(refused).toBeLessThan(0.005);
  });

  test('reaches more than a dispatcher that only honours Retry-After', () => {
    const { throughput } = scoredLimited(tokenBucket(300, 30), { isRateLearned: false });
    expect(throughput).toBeLessThan(0.5);
  });
});
