import {
  AttemptLeases,
  type HeldLease,
} from '../../../services/dispatcher/src/attempt/attempt-leases.ts';

/** Leases on clocks of the test, and a Redis that says what the test wants. */
export interface LeaseHarness {
  leases: AttemptLeases;
  clockMs: number;
  outageFreeMs: number;
  announced: string[][];
  withdrawn: string[];
  /** Attempts that another process works on. It ends its work while this one waits. */
  elsewhere: Set<string>;
  isRedisAway: boolean;
  isStopping: boolean;
  /** Whether the partitions of the records are still read here. */
  areOurs: boolean;
  /** How long each wait lasts at most, in milliseconds. */
  waits: number[];
  /** Ends the wait for a lease in this process, as the time does. */
  endWait: () => void;
  take: (attemptId: string) => HeldLease;
  takeWhenFree: (attemptId: string) => Promise<HeldLease>;
  tickAfter: (ms: number) => void;
}

export function createLeaseHarness(): LeaseHarness {
  const isOurs = (): boolean => harness.areOurs;
  const leases = new AttemptLeases({
    running: {
      announce: (ids) => harness.announced.push([...ids]),
      withdraw: (ids) => harness.withdrawn.push(...ids),
      claim: (ids) =>
        harness.isRedisAway
          ? Promise.reject(new Error('away'))
          : Promise.resolve(new Set(ids.filter((id) => !harness.elsewhere.has(id)))),
    },
    monotonicMs: () => harness.clockMs,
    outageFreeMs: () => harness.outageFreeMs,
    wait: (ms, signal) => {
      harness.elsewhere = new Set();
      harness.waits.push(ms);
      if (ms < 1_000) return Promise.resolve();
      return new Promise<void>((resolve) => {
        harness.endWait = resolve;
        signal?.addEventListener('abort', () => {
          resolve();
        });
      });
    },
    isStopping: () => harness.isStopping,
  });
  const harness: LeaseHarness = {
    leases,
    clockMs: 0,
    outageFreeMs: 0,
    announced: [],
    withdrawn: [],
    elsewhere: new Set(),
    isRedisAway: false,
    isStopping: false,
    areOurs: true,
    waits: [],
    endWait: () => undefined,
    take: (attemptId) => leases.take(attemptId, isOurs),
    takeWhenFree: (attemptId) => leases.takeWhenFree(attemptId, isOurs),
    tickAfter(ms) {
      harness.clockMs += ms;
      leases.tick();
    },
  };
  return harness;
}
