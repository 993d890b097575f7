import type {
  Admission,
  AttemptReport,
  Candidate,
  CircuitView,
  Slot,
  QueueKind,
} from '../../../services/dispatcher/src/isolation/gate.ts';
import { Handover } from '../../../services/dispatcher/src/isolation/handover.ts';
import { type QueueDeps, Queues } from '../../../services/dispatcher/src/isolation/queues.ts';
import {
  type EndpointFlows,
  pauseKeyOf,
  type SharedPause,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import {
  createPayloadMemory,
  type PayloadMemory,
} from '../../../services/dispatcher/src/payloads.ts';
import { createVirtualTimers, type VirtualTimers } from '../time/virtual-timers.ts';

/** An attempt that has entered a queue, and what happened to it. */
export interface Entered {
  candidate: Candidate;
  /** Undefined while it waits. */
  admission?: Admission;
  slot?: Slot;
  /** When it got its slot, by the clock of the harness. */
  startedAtMs?: number;
  /** The return value of `begin`. */
  hasBegun?: boolean;
  isPayloadDropped: boolean;
}

export interface QueueHarness {
  queues: Queues;
  /** What former owners left, and what is left for later ones. This process has no partitions at first. */
  handover: Handover;
  time: VirtualTimers;
  /** Circuits by webhook id. Those of other webhooks are closed. */
  circuits: Map<string, CircuitView>;
  /** Returns how many attempts have begun and were not reported to their circuit yet. */
  unreported: () => number;
  /** The reported holds: webhook id and milliseconds. */
  holds: [webhookId: string, forMs: number][];
  /** Takes over the only partition, in which a former owner left pauses of these webhooks that end after `forMs`. */
  inheritPauses: (webhookIds: readonly string[], forMs: number, url?: string) => Promise<void>;
  /** How long an attempt may wait. In the dispatcher it depends on the memory in use. */
  maxWait: { ms: number };
  /** Whether this process has no CPU time left; false at first. */
  overload: { is: boolean };
  /** The memory for payloads that have to be loaded: room for four of 64 KiB, two of each company. */
  payloads: PayloadMemory;
  /** Enters this many attempts. Those that get a slot begin at once. */
  enter: (
    webhookId: string,
    queue: QueueKind,
    count?: number,
    as?: Partial<Candidate>,
  ) => Promise<Entered[]>;
  /** Ends those attempts that have a slot. */
  finish: (entered: readonly Entered[], result?: Partial<AttemptReport> | null) => Promise<void>;
  /** Starts the next iteration of the event loop. */
  nextLoop: () => Promise<void>;
  /** Advances the clock, and ticks the queues every 100 ms. */
  pass: (ms: number) => Promise<void>;
}

type HandoverFlows = Pick<EndpointFlows, 'report' | 'readAll' | 'reportPause' | 'takeOverPauses'>;

export interface QueueHarnessOptions {
  limits?: Partial<QueueDeps['limits']>;
  /** Returns by how much stallFreeMs() is behind the clock; see stall-free-clock.ts. */
  stalledMs?: () => number;
  /** The size of each payload that is loaded; 64 KiB by default, which is what it counts for before. */
  payloadBytes?: number;
  /** Whether attempts begin as soon as they have a slot; true by default. */
  begins?: boolean;
  /** The flows in Redis; none by default. */
  flows?: HandoverFlows;
}

const URL = 'https://one.example/';
/** All webhooks are in this one. */
const PARTITION = 0;
export const EPOCH_MS = 1_700_000_000_000;
export const TICK_MS = 100;
const SUCCESS: AttemptReport = { outcome: 'success', statusCode: 200, retryAfterMs: null };
/** A fixed limit of 16 attempts at once. How limits are learned is tested elsewhere. */
const LIMITS: QueueDeps['limits'] = {
  perEndpoint: { floor: 16, start: 16, ceiling: 16 },
  perHostPerSecond: 0,
  fast: 1_000,
  slow: 100,
  startsPerLoop: { fast: Infinity, slow: Infinity },
};

/** Waits until all settled promises have called back. */
async function flushPromises(): Promise<void> {
  // The first attempt of an endpoint that comes from another process takes some twenty microtasks in sequence.
  // setImmediate would make minutes of ticks slow.
  for (let n = 0; n < 32; n += 1) await Promise.resolve();
}

/** Creates the queues of the dispatcher with a clock, circuits and memory that the test controls. */
export function createQueueHarness({
  limits,
  stalledMs,
  begins = true,
  payloadBytes = 65_536,
  flows,
}: QueueHarnessOptions = {}): QueueHarness {
  const perEndpoint = limits?.perEndpoint ?? LIMITS.perEndpoint;
  const time = createVirtualTimers();
  const circuits: QueueHarness['circuits'] = new Map();
  const holds: QueueHarness['holds'] = [];
  const maxWait = { ms: 30_000 };
  const overload = { is: false };
  const acts: (() => void)[] = [];
  const payloads = createPayloadMemory(
    () => Promise.resolve({ bytes: Buffer.alloc(payloadBytes), headers: {} }),
    4 * 65_536,
  );
  let unreported = 0;
  const left = new Map<string, SharedPause>();
  const nowMs = (): number => EPOCH_MS + time.nowMs();
  const clocks: Pick<QueueDeps, 'nowMs' | 'monotonicMs' | 'inNextLoop' | 'wakeAfter'> = {
    nowMs,
    monotonicMs: () => time.nowMs(),
    inNextLoop: (act) => void acts.push(act),
    // In whole milliseconds, like setTimeout.
    wakeAfter: (ms, wake) => time.after(Math.ceil(ms), wake),
  };
  const handover: Handover = new Handover({
    known: () => queues,
    flows: {
      report: () => undefined,
      readAll: (ids) => Promise.resolve(ids.map(() => null)),
      reportPause: ({ webhookId }, untilMs) => void holds.push([webhookId, untilMs - nowMs()]),
      takeOverPauses: (read) => Promise.resolve({ found: left, read: [...read] }),
      ...flows,
    },
    partitionOf: () => PARTITION,
    startConcurrency: perEndpoint.start,
    ceiling: perEndpoint.ceiling,
    ...clocks,
  });
  const queues: Queues = new Queues({
    limits: { ...LIMITS, ...limits, perEndpoint },
    maxWaitMs: () => maxWait.ms,
    isOverloaded: () => overload.is,
    payloads,
    onArrival: () => undefined,
    circuitOf: ({ webhookId }) => circuits.get(webhookId) ?? { kind: 'closed' },
    beginAttempt() {
      unreported += 1;
      return () => {
        unreported -= 1;
        return Promise.resolve();
      };
    },
    handover,
    stallFreeMs: () => time.nowMs() - (stalledMs?.() ?? 0),
    ...clocks,
  });
  const enterOne = (entered: Entered): void => {
    void queues.enter(entered.candidate).then((admission) => {
      entered.admission = admission;
      if (admission.kind !== 'slot') return;
      entered.slot = admission.slot;
      entered.startedAtMs = time.nowMs();
      if (begins) entered.hasBegun = admission.slot.begin();
    });
  };
  return {
    queues,
    handover,
    time,
    circuits,
    holds,
    maxWait,
    overload,
    payloads,
    unreported: () => unreported,
    async inheritPauses(webhookIds, forMs, url = URL) {
      for (const webhookId of webhookIds) {
        const pause = { untilMs: nowMs() + forMs, partition: PARTITION };
        left.set(pauseKeyOf({ webhookId, url }), pause);
      }
      await handover.own(new Set([PARTITION]));
      await handover.restore();
    },
    async enter(webhookId, queue, count = 1, as = {}) {
      const all = Array.from({ length: count }, () => enteredOf(webhookId, queue, as));
      all.forEach(enterOne);
      await flushPromises();
      return all;
    },
    async finish(entered, result = {}) {
      const report = result && { ...SUCCESS, ...result };
      for (const { slot } of entered) void slot?.end(report);
      await flushPromises();
    },
    async nextLoop() {
      for (const act of acts.splice(0)) act();
      await flushPromises();
    },
    async pass(ms) {
      const untilMs = time.nowMs() + ms;
      while (time.nowMs() < untilMs) {
        const nextTickMs = (Math.floor(time.nowMs() / TICK_MS) + 1) * TICK_MS;
        await time.runUntil(Math.min(untilMs, nextTickMs), flushPromises);
        if (time.nowMs() === nextTickMs) queues.tick();
        await flushPromises();
      }
      await flushPromises();
    },
  };
}

function enteredOf(webhookId: string, queue: QueueKind, as: Partial<Candidate>): Entered {
  const entered: Entered = {
    isPayloadDropped: false,
    candidate: {
      webhookId,
      companyId: `company of ${webhookId}`,
      url: URL,
      queue,
      trigger: queue === 'retry' ? 'retry' : 'first',
      rateLimitPerSecond: null,
      reservedAtMs: null,
      deferredSinceMs: null,
      hasPayload: () => true,
      dropPayload: () => {
        entered.isPayloadDropped = true;
      },
      ...as,
    },
  };
  return entered;
}

/** Returns how many attempts are in each state. */
export function count(all: readonly Entered[]) {
  const kinds = all.map(({ admission }) => admission?.kind ?? 'waiting');
  const of = (kind: (typeof kinds)[number]): number => kinds.filter((each) => each === kind).length;
  return {
    started: of('slot'),
    waiting: of('waiting'),
    slowLane: of('slow_lane'),
    deferred: of('defer'),
  };
}

/** Returns the reservations of the deferred attempts, in milliseconds after `sinceMs` of the clock of the harness. */
export function reservationsOf(all: readonly Entered[], sinceMs: number): number[] {
  return all.flatMap(({ admission }) =>
    admission?.kind === 'defer' ? [Math.round(admission.reservedAtMs - EPOCH_MS - sinceMs)] : [],
  );
}
