import type { Ordering } from '@posthorn/domain/delivery/sequence.ts';
import type { Random } from '../deterministic/random.ts';

/** The parameters of a run, drawn from its seed. */
export interface Plan {
  messages: number;
  /** Probability that an attempt succeeds, by webhook. */
  successRates: number[];
  partitions: number;
  dispatchers: number;
  retries: number;
  /** Longest time that a request to Kafka or MongoDB takes in each direction. */
  latencyMs: number;
  /** Probability of a fault between two steps, until `faults` are used up. */
  faultRate: number;
  faults: number;
  /** Whether wall clocks jump by an hour. */
  hasClockJumps: boolean;
  /** Probability that a request to Kafka or MongoDB gets no response, or takes effect partially or twice. */
  lossRate: number;
  /** Probability that an attempt is deferred. */
  deferRate: number;
  /** Probability that an offset is skipped, as by a control record of Kafka. */
  gapRate: number;
  /** In-flight records of a topic at which a process pauses it. A small limit causes pauses. */
  maxInFlight: number;
  /** How many times a webhook is deleted, disabled or enabled. */
  webhookChanges: number;
  resends: number;
  /** How many times a webhook is put on hold, and resumed some time later. */
  holds: number;
  /** The `ordering` of all webhooks. */
  ordering: Ordering;
  /** Ordering keys among which each message has one. */
  keys: number;
  /** The longest time between two messages. */
  maxGapMs: number;
  /** Whether the last webhook is made after the first messages, which are replayed to it later. */
  hasReplay: boolean;
}

/** Seeds from here on have messages with ordering keys; those below have the runs that they always had. */
export const ORDERED_FROM = 1_000_000;
/** Seeds from here on have a replay of such messages as well. */
export const REPLAYED_FROM = 2_000_000;

const UNLIMITED = 1_000;

export function randomPlan(random: Random): Plan {
  const webhooks = random.pick([1, 1, 2, 3]);
  const hasClockJumps = random.bool(0.5);
  return {
    messages: random.between(1, 4),
    successRates: Array.from({ length: webhooks }, () => random.pick([0, 0, 0.1, 0.3, 0.7, 1])),
    partitions: random.pick([1, 1, 2, 3]),
    dispatchers: random.between(1, 3),
    retries: random.between(1, 2),
    latencyMs: random.pick([5, 50, 500, 3_000]),
    faultRate: random.pick([0.001, 0.005, 0.02, 0.1]),
    faults: random.between(0, 25),
    hasClockJumps,
    lossRate: random.pick([0, 0.01, 0.05, 0.2]),
    deferRate: random.pick([0, 0.05, 0.2]),
    gapRate: random.pick([0, 0, 0.1]),
    maxInFlight: random.pick([2, 6, UNLIMITED]),
    webhookChanges: random.pick([0, 0, 1, 2, 4]),
    resends: random.pick([0, 0, 1, 3]),
    holds: random.pick([0, 0, 0, 1, 3, 12]),
    ordering: 'none',
    keys: 0,
    maxGapMs: 3_000,
    hasReplay: false,
  };
}

/** Returns a plan with more messages, of which those of a key are to be delivered in order. */
export function orderedPlan(random: Random): Plan {
  const plan = randomPlan(random);
  return {
    ...plan,
    messages: random.between(2, 12),
    dispatchers: random.between(2, 3),
    successRates: plan.successRates.map(() => random.pick([0, 0.3, 0.7, 0.9, 1])),
    ordering: random.pick(['block', 'skip', 'skip']),
    keys: random.pick([1, 1, 2]),
    maxGapMs: random.pick([1, 100, 3_000]),
  };
}

/** Returns a plan in which the messages of a replay join ordering keys with messages in front of them and behind them. */
export function replayedPlan(random: Random): Plan {
  const plan = orderedPlan(random);
  const rate = (): number => random.pick([0.3, 0.7, 0.9]);
  return {
    ...plan,
    messages: random.between(6, 15),
    successRates: [rate(), rate()],
    maxGapMs: random.pick([1_000, 3_000]),
    hasReplay: true,
  };
}

/** Returns a plan without faults, in which every attempt fails, to check the schedule. */
export function faultFreePlan(random: Random): Plan {
  return {
    ...randomPlan(random),
    successRates: [0, 0],
    latencyMs: 20,
    faultRate: 0,
    faults: 0,
    lossRate: 0,
    deferRate: 0,
    maxInFlight: UNLIMITED,
    webhookChanges: 0,
    resends: 0,
    holds: 0,
  };
}
