import { beforeEach, describe, expect, it, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createFairQueue,
  createFifo,
  createPlaceOrder,
  type FairQueue,
  type PlaceOrder,
  slicesOf,
} from './fair-queue.ts';

describe('fair queue', () => {
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
});

it('does what an array does, whatever is pushed, shifted and popped', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('push'), times: fc.integer({ min: 1, max: 3_000 }) }),
    fc.record({ kind: fc.constant('shift'), times: fc.integer({ min: 1, max: 3_000 }) }),
    fc.record({ kind: fc.constant('pop'), times: fc.integer({ min: 1, max: 3_000 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const fifo = createFifo<number>();
      const model: number[] = [];
      let pushed = 0;
      for (const { kind, times } of steps) {
        for (let n = 0; n < times; n += 1) {
          if (kind === 'push') {
            fifo.push(pushed);
            model.push(pushed);
            pushed += 1;
          } else if (kind === 'pop') {
            if (fifo.pop() !== model.pop()) return false;
          } else if (fifo.shift() !== model.shift()) return false;
        }
        if (fifo.size() !== model.length || fifo.peek() !== model[0]) return false;
        if (fifo.peekLast() !== model.at(-1)) return false;
      }
      return true;
    }),
    { numRuns: 50 },
  );
});

it('holds no reference to items that were removed', () => {
  const fifo = createFifo<string>();
  expect([fifo.peek(), fifo.shift(), fifo.size()]).toEqual([undefined, undefined, 0]);
  fifo.push('a');
  fifo.push('b');
  expect([fifo.shift(), fifo.peek(), fifo.size()]).toEqual(['a', 'b', 1]);
  expect([fifo.shift(), fifo.shift(), fifo.size()]).toEqual(['b', undefined, 0]);
});

describe('place order', () => {
  interface Taker {
    id: string;
    companyId: string;
  }

  let order: PlaceOrder<Taker>;

  beforeEach(() => {
    order = createPlaceOrder();
  });

  const taker = (companyId: string, n = 0): Taker => ({ id: `${companyId}${n}`, companyId });

  function addAll(...takers: Taker[]): void {
    for (const each of takers) order.add(each);
  }

  function takeAll(): string[] {
    const taken: string[] = [];
    for (let next = order.next(); next; next = order.next()) taken.push(next.id);
    return taken;
  }

  describe('free places', () => {
    it('go to companies in turn, and to the endpoints of a company in turn', () => {
      addAll(
        taker('a', 1),
        taker('a', 2),
        taker('a', 3),
        taker('b', 1),
        taker('c', 1),
        taker('b', 2),
      );
      expect(takeAll()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
    });

    it('go to nobody when nobody waits', () => {
      expect(order.next()).toBeNull();
    });

    it('all go to a company that waits alone', () => {
      addAll(taker('a', 1), taker('a', 2));
      expect(takeAll()).toEqual(['a1', 'a2']);
    });

    it('reach a newcomer after one round, however many of other companies wait', () => {
      for (let n = 0; n < 2_000; n += 1) order.add(taker('large', n));
      order.next();
      order.add(taker('small'));
      expect([order.next()?.id, order.next()?.id]).toEqual(['large1', 'small0']);
    });

    it('go to one that waits again at the end of the round', () => {
      const again = taker('a', 1);
      addAll(again, taker('b', 1), taker('a', 2));
      order.next();
      order.add(again);
      expect(takeAll()).toEqual(['b1', 'a2', 'a1']);
    });

    it('go once to one that was added twice, and never to one that was removed', () => {
      const [twice, removed] = [taker('a', 1), taker('b', 1)];
      addAll(twice, removed, twice);
      order.remove(removed);
      order.remove(taker('unknown'));
      expect(takeAll()).toEqual(['a1']);
    });
  });

  describe('whoever is added and removed', () => {
    it('is taken exactly once, and the shares of waiting companies differ by at most one', () => {
      const some = fc.array(fc.record({ companyId: fc.constantFrom('a', 'b', 'c'), n: fc.nat(5) }));
      fc.assert(
        fc.property(some, some, (added, removed) => {
          order = createPlaceOrder();
          const known = new Map<string, Taker>();
          const find = ({ companyId, n }: { companyId: string; n: number }): Taker => {
            const found = known.get(`${companyId}${n}`) ?? taker(companyId, n);
            known.set(found.id, found);
            return found;
          };
          const expected = new Set(added.map(find));
          addAll(...expected);
          for (const each of removed.map(find)) {
            order.remove(each);
            expected.delete(each);
          }
          const taken = takeAll();
          expect([...taken].sort()).toEqual([...expected].map(({ id }) => id).sort());
          expect(isInTurns(taken)).toBe(true);
        }),
      );
    });
  });

  /** When a company gets its n-th place, every company that still waits has had n - 1. */
  function isInTurns(taken: readonly string[]): boolean {
    const rounds = taken.map(
      (id, at) => taken.slice(0, at).filter((before) => before.startsWith(id.charAt(0))).length,
    );
    return rounds.every((round, at) => at === 0 || round >= (rounds[at - 1] ?? 0));
  }
});

test('items come in slices of at most the size, in their order', () => {
  expect(slicesOf([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  expect(slicesOf([1, 2], 2)).toEqual([[1, 2]]);
  expect(slicesOf([], 2)).toEqual([]);
});
