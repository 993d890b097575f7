import { isOutage, type KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { Gauge, type Registry } from 'prom-client';

export interface OutageWatch {
  /** Returns one that retries like the given one, and notes which steps fail. */
  watch: (keepTrying: KeepTrying) => KeepTrying;
  /** True while a step fails because a store or Kafka is away. */
  isOutage: () => boolean;
}

/**
 * Notes the steps that fail by an outage. A primary without a majority still answers reads, so the
 * connection does not show the outage.
 */
export function createOutageWatch(registry: Registry): OutageWatch {
  /** Purpose → true while its last try has failed. Purposes are few and fixed. */
  const failing = new Map<string, boolean>();
  new Gauge({
    name: 'posthorn_failing_steps',
    help: '1 while the step fails because a store or Kafka is away, and is repeated; 0 while it succeeds.',
    labelNames: ['step'],
    registers: [registry],
    collect() {
      for (const [step, isFailing] of failing) this.set({ step }, isFailing ? 1 : 0);
    },
  });
  return {
    watch: (keepTrying) => (purpose, step, fieldsOf) =>
      keepTrying(purpose, () => runAndNote(failing, purpose, step), fieldsOf),
    isOutage: () => [...failing.values()].includes(true),
  };
}

async function runAndNote<T>(
  failing: Map<string, boolean>,
  purpose: string,
  step: () => Promise<T>,
): Promise<T> {
  try {
    const result = await step();
    failing.set(purpose, false);
    return result;
  } catch (error) {
    failing.set(purpose, isOutage(error));
    throw error;
  }
}

export interface OutageFreeClock {
  /** Counts the time since the last call. To be called every 100 ms. */
  tick: () => void;
  /** Milliseconds so far. */
  countedMs: () => number;
}

interface OutageFreeClockDeps {
  /** False while a store or Kafka fails: work that makes no progress then is no fault. */
  areStoresUp: () => boolean;
  monotonicMs: () => number;
}

/** A process that slept did not work, so that a longer time between two calls counts as this. */
const MAX_COUNTED_MS = 1_000;

/** Counts the time in which the stores answer. */
export function createOutageFreeClock({
  areStoresUp,
  monotonicMs,
}: OutageFreeClockDeps): OutageFreeClock {
  let countedMs = 0;
  let lastMs = monotonicMs();
  return {
    tick() {
      const nowMs = monotonicMs();
      if (areStoresUp()) countedMs += Math.min(nowMs - lastMs, MAX_COUNTED_MS);
      lastMs = nowMs;
    },
    countedMs: () => countedMs,
  };
}

export interface StallFreeClock {
  /** Monotonic milliseconds, without the time in which the event loop was blocked. */
  nowMs: () => number;
  /** To be called every `everyMs`. By how much a call is late is time in which nothing could run. */
  tick: () => void;
  /** To be called before the first tick after a rest, which is not late. */
  resume: () => void;
}

/** A timer is this late in an idle process. */
const USUAL_LATENESS_MS = 2;

/**
 * A clock for the durations of attempts. A response that stays in the socket while this process does
 * something else (other responses, garbage collection, no CPU) must not make its endpoint look slow.
 * By the wall clock, in an overload, every endpoint took 160 ms, and attempts were deferred for that.
 */
export function createStallFreeClock(everyMs: number, monotonicMs: () => number): StallFreeClock {
  let lastTickMs = monotonicMs();
  let blockedMs = 0;
  const missedMs = (): number =>
    Math.max(0, monotonicMs() - lastTickMs - everyMs - USUAL_LATENESS_MS);
  return {
    nowMs: () => monotonicMs() - blockedMs - missedMs(),
    tick() {
      blockedMs += missedMs();
      lastTickMs = monotonicMs();
    },
    resume() {
      lastTickMs = monotonicMs();
    },
  };
}

interface OverloadWatch {
  isOverloaded: () => boolean;
  /**
   * To be called often, with the share of the time since the last call in which the event loop was
   * busy, 0 to 1.
   */
  tick: (busyShare: number) => void;
}

/** Time in which the process was preempted counts as busy, so a machine short of CPU reaches this, too. */
const BUSY_FROM = 0.9;
/** An overload comes in waves. The queues that one of them left are not the fault of the endpoints. */
const LASTS_MS = 2_000;

/** Watches whether this process itself is the bottleneck. */
export function createOverloadWatch(monotonicMs: () => number): OverloadWatch {
  let untilMs = -Infinity;
  return {
    isOverloaded: () => monotonicMs() < untilMs,
    tick(busyShare) {
      if (busyShare >= BUSY_FROM) untilMs = monotonicMs() + LASTS_MS;
    },
  };
}

/** Returns a function that reports how busy the event loop was since it was last called. */
export function measureLoop(report: (busyShare: number) => void): () => void {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    report(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  };
}
