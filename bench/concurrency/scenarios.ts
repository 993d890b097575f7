import { createRandom } from '../../test/support/samples/seeded-random.ts';
import * as receivers from './receivers.ts';
import type { Receiver } from './receivers.ts';
import type { Load } from './simulate.ts';

export interface Scenario {
  name: string;
  /** Attempts per second that become due. */
  offered: number;
  /** Successes per second that are possible. */
  possible: number;
  seconds: number;
  /** The score counts the seconds from this one on. */
  fromSecond: number;
  receiver: (random: () => number) => Receiver;
  noise?: (random: () => number) => Load['seenAt'];
}

/** The delays of an idle process: a fraction of a millisecond, seldom a few milliseconds. */
function quiet(random: () => number): Load['seenAt'] {
  return (ms) => ms - Math.log(1 - random()) * 0.5;
}

/**
 * The delays of a process on two busy cores: each response is seen 1 to 40 ms late, and the event loop is blocked for
 * 50 to 150 ms about once a second. What arrived meanwhile is seen together afterwards.
 */
export function busy(random: () => number): Load['seenAt'] {
  let [fromMs, toMs] = [0, 0];
  return (ms) => {
    while (toMs < ms) {
      fromMs = toMs + random() * 2_000;
      toMs = fromMs + 50 + random() * 100;
    }
    return (ms > fromMs ? toMs : ms) + 1 + random() ** 3 * 39;
  };
}

const { fixedLatency, spreadLatency } = receivers;

export const SCENARIOS: Scenario[] = [
  {
    name: '20 ms',
    offered: 1_500,
    possible: 1_500,
    seconds: 30,
    fromSecond: 0,
    receiver: () => fixedLatency(20),
  },
  {
    name: '200 ms',
    offered: 900,
    possible: 900,
    seconds: 30,
    fromSecond: 0,
    receiver: () => fixedLatency(200),
  },
  {
    name: '200 ms, spread, own process busy',
    offered: 900,
    possible: 900,
    seconds: 60,
    fromSecond: 0,
    receiver: (random) => spreadLatency(200, random),
    noise: busy,
  },
  {
    name: '1 ms, own process busy',
    offered: 1_500,
    possible: 1_500,
    seconds: 60,
    fromSecond: 0,
    receiver: () => fixedLatency(1),
    noise: busy,
  },
  {
    name: '8 workers of 50 ms',
    offered: 900,
    possible: 160,
    seconds: 120,
    fromSecond: 5,
    receiver: (random) => receivers.workers(8, 50, random),
  },
  {
    name: '64 workers of 50 ms',
    offered: 2_000,
    possible: 1_280,
    seconds: 60,
    fromSecond: 5,
    receiver: (random) => receivers.workers(64, 50, random),
  },
  {
    name: '400 workers of 200 ms',
    offered: 3_000,
    possible: 2_000,
    seconds: 60,
    fromSecond: 5,
    receiver: (random) => receivers.workers(400, 200, random),
  },
  {
    name: '20 ms, twice that with 50 at once',
    offered: 3_000,
    possible: 1_250,
    seconds: 60,
    fromSecond: 5,
    receiver: () => receivers.risingLatency(20, 50),
  },
  {
    name: '503 above 100 at once, 50 ms',
    offered: 3_000,
    possible: 2_000,
    seconds: 60,
    fromSecond: 5,
    receiver: (random) => receivers.boundedConcurrency(100, spreadLatency(50, random)),
  },
  {
    name: '503 above 10 at once, 50 ms',
    offered: 1_000,
    possible: 200,
    seconds: 60,
    fromSecond: 5,
    receiver: (random) => receivers.boundedConcurrency(10, spreadLatency(50, random)),
  },
  {
    name: '503 for 1 % at random, 200 ms',
    offered: 900,
    possible: 891,
    seconds: 60,
    fromSecond: 5,
    receiver: (random) => receivers.failingAtRandom(0.01, fixedLatency(200), random),
  },
  {
    name: '503 for 5 % at random, 200 ms',
    offered: 900,
    possible: 855,
    seconds: 120,
    fromSecond: 60,
    receiver: (random) => receivers.failingAtRandom(0.05, fixedLatency(200), random),
  },
  {
    name: 'restart: 503 for 5 s, 200 ms',
    offered: 900,
    possible: 900,
    seconds: 60,
    fromSecond: 25,
    receiver: () => receivers.down(20_000, 25_000, '503', fixedLatency(200)),
  },
  {
    name: 'restart: no connection for 5 s, 200 ms',
    offered: 900,
    possible: 900,
    seconds: 60,
    fromSecond: 25,
    receiver: () => receivers.down(20_000, 25_000, 'no connection', fixedLatency(200)),
  },
  {
    name: '500 ms, falling to 20 ms in 20 s',
    offered: 900,
    possible: 900,
    seconds: 60,
    fromSecond: 0,
    receiver: () => receivers.warmingUp(500, 20, 20_000),
  },
  {
    name: '200 ms, busy in each second',
    offered: 900,
    possible: 900,
    seconds: 30,
    fromSecond: 0,
    receiver: () =>
      receivers.busyAtTimes({ everyMs: 1_000, forMs: 300, extraMs: 200 }, fixedLatency(200)),
  },
  {
    name: '200 ms, busy at times',
    offered: 900,
    possible: 900,
    seconds: 120,
    fromSecond: 0,
    receiver: () =>
      receivers.busyAtTimes({ everyMs: 5_000, forMs: 500, extraMs: 200 }, fixedLatency(200)),
  },
  {
    name: '20 ms, after 20 s 200 ms',
    offered: 900,
    possible: 900,
    seconds: 60,
    fromSecond: 20,
    receiver: () => receivers.changed(20_000, fixedLatency(20), fixedLatency(200)),
  },
];

/** `isRateLearned`: whether the dispatcher paces by the rate that it learned from refusals. */
export function loadOf(scenario: Scenario, seed: number, isRateLearned = true): Load {
  const random = createRandom(seed);
  return {
    receiver: scenario.receiver(random),
    offered: () => scenario.offered,
    seconds: scenario.seconds,
    seenAt: (scenario.noise ?? quiet)(random),
    isRateLearned,
  };
}
