import { describe, expect, test } from '@jest/globals';
import { RATE_SCENARIOS } from './rate-scenarios.ts';
import { RULES, type RuleName } from './rules.ts';
import { loadOf, SCENARIOS } from './scenarios.ts';
import { simulate } from './simulate.ts';
import { scoreOf, tableOf, type Score } from './table.ts';

const BOUNDS = { floor: 1, start: 16, ceiling: 1_000 };
const ALL = [...SCENARIOS, ...RATE_SCENARIOS];

/** Runs in virtual time: the numbers are the same on every machine. */
function scored(name: string, rule: RuleName = 'chosen', isRateLearned = true): Score {
  const scenario = ALL.find((each) => each.name === name);
  if (!scenario) throw new Error(`No scenario is called ${name}`);
  return scoreOf(simulate(loadOf(scenario, 1, isRateLearned), RULES[rule](BOUNDS)), scenario);
}

describe('the chosen rule, in the simulation', () => {
  test.each(['20 ms', '200 ms', '200 ms, spread, own process busy', '1 ms, own process busy'])(
    'reaches the full rate of an endpoint of %s within two seconds',
    (name) => {
      const { throughput, secondsTo95 } = scored(name);
      expect(throughput).toBeGreaterThan(0.99);
      expect(secondsTo95).toBeLessThanOrEqual(2);
    },
  );

  test.each(['200 ms, busy in each second', '200 ms, busy at times'])(
    'soon returns after a latency that no queue raised: %s',
    (name) => {
      const { throughput, mostWaiting } = scored(name);
      expect(throughput).toBeGreaterThan(0.98);
      expect(mostWaiting).toBeLessThan(1_500);
    },
  );

  test.each([
    ['8 workers of 50 ms', 0.95, 32],
    ['64 workers of 50 ms', 0.95, 100],
    ['400 workers of 200 ms', 0.9, 150],
  ])('keeps %s busy without a long queue', (name, share, queue) => {
    const { throughput, longestQueue } = scored(name);
    expect(throughput).toBeGreaterThan(share);
    expect(longestQueue).toBeLessThanOrEqual(queue);
  });

  test.each(['503 above 100 at once, 50 ms', '503 above 10 at once, 50 ms'])(
    'finds how many attempts at once are accepted: %s',
    (name) => {
      const { throughput, refused } = scored(name);
      expect(throughput).toBeGreaterThan(0.93);
      expect(refused).toBeLessThan(0.02);
    },
  );

  test.each(['503 for 1 % at random, 200 ms', '503 for 5 % at random, 200 ms'])(
    'does not decrease for refusals that are unrelated to load: %s',
    (name) => {
      expect(scored(name).throughput).toBeGreaterThan(0.99);
    },
  );

  test.each([
    ['restart: 503 for 5 s, 200 ms', 5],
    ['restart: no connection for 5 s, 200 ms', 2],
    ['20 ms, after 20 s 200 ms', 5],
  ])('recovers within seconds: %s', (name, seconds) => {
    expect(scored(name).secondsTo95).toBeLessThanOrEqual(seconds);
  });

  test('reaches nine tenths of an endpoint whose latency rises with the attempts at once', () => {
    expect(scored('20 ms, twice that with 50 at once').throughput).toBeGreaterThan(0.9);
  });
});

describe('the other rules, in the simulation', () => {
  test('AIMD lets the queue grow to the ceiling', () => {
    expect(scored('8 workers of 50 ms', 'AIMD').longestQueue).toBeGreaterThan(900);
  });

  test('Vegas decreases for the noise of our own process', () => {
    expect(scored('200 ms, spread, own process busy', 'Vegas').throughput).toBeLessThan(0.2);
  });

  test('Gradient2 grows too slowly', () => {
    expect(scored('200 ms', 'Gradient2').throughput).toBeLessThan(0.5);
  });
});

describe('the learned rate, in the simulation', () => {
  test.each([
    '300/s, fixed window',
    '300/s, sliding window, 200 ms',
    '300/s, bucket of 300',
    '300/s, bucket of 30',
    '300/s, fixed window, no Retry-After',
  ])('reaches nine tenths after a minute, with few refusals: %s', (name) => {
    const { throughput, refused } = scored(name);
    expect(throughput).toBeGreaterThan(0.9);
    expect(refused).toBeLessThan(0.005);
  });

  test.each([
    ['300/s, fixed window, both busy', 0.85],
    ['300/s, sliding window, both busy', 0.8],
  ])('reaches most of the limit on a full machine: %s', (name, share) => {
    const { throughput, refused } = scored(name);
    expect(throughput).toBeGreaterThan(share);
    expect(refused).toBeLessThan(0.005);
  });

  test.each(['429 for 0.1 % at random', '429 for 1 % at random'])(
    'does not lower the rate for refusals that are unrelated to it: %s',
    (name) => {
      expect(scored(name).throughput).toBeGreaterThan(0.99);
    },
  );

  test('finds a limit that was raised tenfold within two minutes', () => {
    expect(scored('30/s, after 60 s 300/s').secondsTo95).toBeLessThan(120);
  });

  test('follows a limit that was lowered to a tenth', () => {
    const { throughput, refused } = scored('300/s, after 60 s 30/s');
    expect(throughput).toBeGreaterThan(0.9);
    expect(refused).toBeLessThan(0.005);
  });

  test('outperforms a dispatcher that only honours Retry-After', () => {
    expect(scored('300/s, bucket of 30', 'chosen', false).throughput).toBeLessThan(0.5);
  });
});

test('the table has a row for each receiver and rule', () => {
  const score = scored('20 ms');
  const lines = tableOf([{ scenario: '20 ms', rule: 'chosen', score }]).split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[2]).toMatch(/^\| 20 ms +\| chosen +\| 99\.\d %/);
});
