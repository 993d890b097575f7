import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createFairQueue, type FairQueue } from './fair-queue.ts';

interface Job {
  key: string;
  number: number;
  cost: number;
}

function take(turns: FairQueue<Job>): Job | undefined {
  const job = turns.next();
  if (job) turns.charge(job.cost, true);
  return job;
}

function takeAll(turns: FairQueue<Job>): Job[] {
  const taken: Job[] = [];
  for (let job = take(turns); job; job = take(turns)) taken.push(job);
  return taken;
}

function waiting(quantum: number, jobs: readonly Job[]): FairQueue<Job> {
  const turns = createFairQueue<Job>(quantum);
  for (const job of jobs) turns.push(job.key, job);
  return turns;
}

const jobsOf = (key: string, count: number, cost = 1): Job[] =>
  Array.from({ length: count }, (_, number) => ({ key, number, cost }));
const keysOf = (jobs: readonly Job[]) => jobs.map(({ key }) => key).join('');

const someJobs = fc.array(
  fc.record({ key: fc.constantFrom('a', 'b', 'c'), number: fc.nat(), cost: fc.nat(30) }),
);

describe('keys that take turns', () => {
  test('get one item each, whichever came first with many', () => {
    const turns = waiting(1, [...jobsOf('a', 4), ...jobsOf('b', 2), ...jobsOf('c', 1)]);
    expect(keysOf(takeAll(turns))).toBe('abcabaa');
  });

  test('let a newcomer go before keys that had their turn', () => {
    const turns = waiting(1, [...jobsOf('a', 2), ...jobsOf('b', 2)]);
    take(turns);
    turns.push('c', { key: 'c', number: 0, cost: 1 });
    expect(keysOf(takeAll(turns))).toBe('bcab');
  });

  test('are passed over until a costly item is paid for', () => {
    const turns = waiting(1, [...jobsOf('a', 2, 3), ...jobsOf('b', 5)]);
    expect(keysOf(takeAll(turns))).toBe('abbbabb');
  });

  test('may take several cheap items in one turn when a turn is worth more', () => {
    const turns = waiting(2, [...jobsOf('a', 4), ...jobsOf('b', 3)]);
    expect(keysOf(takeAll(turns))).toBe('aabbaab');
  });

  test('can take a part of an item and keep the rest', () => {
    const turns = waiting(1, [...jobsOf('a', 1), ...jobsOf('b', 1)]);
    turns.next();
    turns.charge(1, false);
    expect([keysOf(takeAll(turns)), turns.size()]).toEqual(['ba', 0]);
  });

  test('get nothing when nothing waits', () => {
    const turns = createFairQueue<Job>(1);
    turns.charge(1, true);
    expect([turns.next(), turns.size()]).toEqual([undefined, 0]);
  });

  test('each get everything once, in order', () => {
    fc.assert(
      fc.property(someJobs, fc.integer({ min: 1, max: 5 }), (jobs, quantum) => {
        const taken = takeAll(waiting(quantum, jobs));
        expect(taken).toHaveLength(jobs.length);
        for (const key of ['a', 'b', 'c']) {
          const own = (all: readonly Job[]) => all.filter((job) => job.key === key);
          expect(own(taken)).toEqual(own(jobs));
        }
      }),
    );
  });

  test('have cost the same except for one turn and one item, while both wait', () => {
    const costs = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 50 });
    const jobs = (key: string, all: number[]) =>
      all.map((cost, number): Job => ({ key, number, cost }));
    fc.assert(
      fc.property(costs, costs, fc.integer({ min: 1, max: 5 }), (a, b, quantum) => {
        const turns = waiting(quantum, [...jobs('a', a), ...jobs('b', b)]);
        const cost = { a: 0, b: 0 };
        const left = { a: a.length, b: b.length };
        while (left.a > 0 && left.b > 0) {
          const job = take(turns);
          const key = job?.key === 'a' ? 'a' : 'b';
          left[key] -= 1;
          cost[key] += job?.cost ?? 0;
          expect(Math.abs(cost.a - cost.b)).toBeLessThanOrEqual(30 + quantum);
        }
      }),
    );
  });

  test('that are parked have no turns until they are unparked, and keep their order', () => {
    const turns = waiting(1, [...jobsOf('a', 2), ...jobsOf('b', 2)]);
    turns.park('a');
    turns.push('a', { key: 'a', number: 2, cost: 1 });
    expect([[...turns.parked()], turns.size(), keysOf(takeAll(turns))]).toEqual([['a'], 2, 'bb']);
    turns.unpark('a');
    expect([[...turns.parked()], turns.size()]).toEqual([[], 3]);
    expect(takeAll(turns).map(({ number }) => number)).toEqual([0, 1, 2]);
  });
});
