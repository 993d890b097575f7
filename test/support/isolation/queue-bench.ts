import type {
  Admission,
  Candidate,
  QueueDeps,
  Result,
  Turn,
} from '../../../services/dispatcher/src/isolation/queues/queue-state.ts';
import type { CircuitView, Lane } from '../../../services/dispatcher/src/isolation/gate/views.ts';
import {
  createQueues,
  type Queues,
} from '../../../services/dispatcher/src/isolation/queues/queues.ts';
import { createVirtualTimers, type VirtualTimers } from '../time/virtual-timers.ts';

/** One attempt at the bench, and what became of it. */
export interface Entered {
  candidate: Candidate;
  /** Undefined while it waits. */
  admission?: Admission;
  turn?: Turn;
  /** Milliseconds of the bench's time when it got its turn. */
  turnMs?: number;
  /** What `begin` has answered. */
  hasBegun?: boolean;
  isPayloadDropped: boolean;
}

export interface QueueBench {
  queues: Queues;
  time: VirtualTimers;
  /** A webhook whose circuit is not named is closed. */
  circuits: Map<string, CircuitView>;
  /** Permits that were taken and not reported back yet. */
  permits: () => number;
  /** What was told of pauses: webhook id and milliseconds. */
  holds: [webhookId: string, forMs: number][];
  /** How long an attempt may wait; the memory sets it. */
  maxWait: { ms: number };
  /** Lets so many enter; who gets a turn begins its request at once. */
  enter: (
    webhookId: string,
    lane: Lane,
    count?: number,
    as?: Partial<Candidate>,
  ) => Promise<Entered[]>;
  /** Ends the turns of those that have one. */
  finish: (entered: readonly Entered[], result?: Partial<Result> | null) => Promise<void>;
  /** Begins the next turn of the event loop. */
  nextTurn: () => Promise<void>;
  /** Lets time pass; the queues are looked at each 100 ms. */
  pass: (ms: number) => Promise<void>;
}

export interface BenchOptions {
  limits?: Partial<QueueDeps['limits']>;
  /** The time of this process stands still for busyMs() by so much less; see busy-clock.ts. */
  stoodStillMs?: () => number;
  /** False to call `begin` oneself. */
  begins?: boolean;
}

export const EPOCH_MS = 1_700_000_000_000;
export const TICK_MS = 100;
const SUCCESS: Result = { outcome: 'success', statusCode: 200, retryAfterMs: null };
/** Sixteen at once, whatever the endpoint answers: how limits are learned is tested elsewhere. */
const LIMITS: QueueDeps['limits'] = {
  perEndpoint: { floor: 16, start: 16, ceiling: 16 },
  fast: 1_000,
  slow: 100,
  beginsATurn: { fast: Infinity, slow: Infinity },
};

/** What is decided already has been told. */
async function settled(): Promise<void> {
  // An end takes four turns of the microtasks; setImmediate would make minutes of ticks slow.
  for (let turn = 0; turn < 16; turn += 1) await Promise.resolve();
}

/** The dispatcher's queues with a clock, circuits and memory that the test sets. */
export function createQueueBench({
  limits,
  stoodStillMs,
  begins = true,
}: BenchOptions = {}): QueueBench {
  const time = createVirtualTimers();
  const circuits: QueueBench['circuits'] = new Map();
  const holds: QueueBench['holds'] = [];
  const maxWait = { ms: 30_000 };
  const acts: (() => void)[] = [];
  let permits = 0;
  const queues = createQueues({
    limits: { ...LIMITS, ...limits },
    maxWaitMs: () => maxWait.ms,
    isOverloaded: () => false,
    circuitOf: ({ webhookId }) => circuits.get(webhookId) ?? { kind: 'closed' },
    permit() {
      permits += 1;
      return () => {
        permits -= 1;
        return Promise.resolve();
      };
    },
    onHold: (webhookId, forMs) => {
      holds.push([webhookId, forMs]);
    },
    nowMs: () => EPOCH_MS + time.nowMs(),
    monotonicMs: () => time.nowMs(),
    busyMs: () => time.nowMs() - (stoodStillMs?.() ?? 0),
    inNextTurn: (act) => void acts.push(act),
    // As setTimeout is used: whole milliseconds.
    wakeAfter: (ms, wake) => time.after(Math.ceil(ms), wake),
  });
  const ask = (entered: Entered): void => {
    void queues.enter(entered.candidate).then((admission) => {
      entered.admission = admission;
      if (admission.kind !== 'turn') return;
      entered.turn = admission.turn;
      entered.turnMs = time.nowMs();
      if (begins) entered.hasBegun = admission.turn.begin();
    });
  };
  return {
    queues,
    time,
    circuits,
    holds,
    maxWait,
    permits: () => permits,
    async enter(webhookId, lane, count = 1, as = {}) {
      const all = Array.from({ length: count }, () => enteredOf(webhookId, lane, as));
      all.forEach(ask);
      await settled();
      return all;
    },
    async finish(entered, result = {}) {
      const told = result && { ...SUCCESS, ...result };
      for (const { turn } of entered) void turn?.end(told);
      await settled();
    },
    async nextTurn() {
      for (const act of acts.splice(0)) act();
      await settled();
    },
    async pass(ms) {
      const untilMs = time.nowMs() + ms;
      while (time.nowMs() < untilMs) {
        const nextTickMs = (Math.floor(time.nowMs() / TICK_MS) + 1) * TICK_MS;
        await time.runUntil(Math.min(untilMs, nextTickMs), settled);
        if (time.nowMs() === nextTickMs) queues.tick();
        await settled();
      }
      await settled();
    },
  };
}

function enteredOf(webhookId: string, lane: Lane, as: Partial<Candidate>): Entered {
  const entered: Entered = {
    isPayloadDropped: false,
    candidate: {
      webhookId,
      companyId: `company of ${webhookId}`,
      url: 'https://one.example/',
      lane,
      trigger: lane === 'retry' ? 'retry' : 'first',
      rateLimitPerSecond: null,
      turnAtMs: null,
      deferredSinceMs: null,
      dropPayload: () => {
        entered.isPayloadDropped = true;
      },
      ...as,
    },
  };
  return entered;
}

/** How many of them are where. */
export function count(all: readonly Entered[]) {
  const kinds = all.map(({ admission }) => admission?.kind ?? 'waiting');
  const of = (kind: (typeof kinds)[number]): number => kinds.filter((each) => each === kind).length;
  return {
    turns: of('turn'),
    waiting: of('waiting'),
    slowLane: of('slow lane'),
    deferred: of('defer'),
  };
}

/** When they were told to come again, in milliseconds of the bench's time from `sinceMs` on. */
export function turnsOf(all: readonly Entered[], sinceMs: number): number[] {
  return all.flatMap(({ admission }) =>
    admission?.kind === 'defer' ? [Math.round(admission.turnAtMs - EPOCH_MS - sinceMs)] : [],
  );
}
