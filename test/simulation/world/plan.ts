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
}

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
