import type { Random } from '../chance/random.ts';

/** What a seed makes of a run before it begins. */
export interface Plan {
  messages: number;
  /** Probability of a success, for each webhook. */
  successRates: number[];
  partitions: number;
  dispatchers: number;
  retries: number;
  /** A request to Kafka or MongoDB takes up to so long. */
  latencyMs: number;
  /** Probability of a fault between two steps, until the faults are used up. */
  faultRate: number;
  faults: number;
  /** Whether wall clocks jump by an hour. */
  hasJumps: boolean;
  /** Probability that a request to Kafka or MongoDB is done and not answered, or done in part, or twice. */
  lossRate: number;
  /** Probability that an endpoint's circuit puts an attempt off. */
  deferRate: number;
  /** Probability that an offset is taken by a mark of Kafka's own. */
  gapRate: number;
  /** Records of a topic that a process has under work at most; a small one holds partitions back. */
  window: number;
  /** Webhooks deleted, disabled or enabled. */
  webhookChanges: number;
  resends: number;
}

const ROOMY = 1_000;

export function drawPlan(random: Random): Plan {
  const webhooks = random.pick([1, 1, 2, 3]);
  const hasJumps = random.isHit(0.5);
  return {
    messages: random.between(1, 4),
    successRates: Array.from({ length: webhooks }, () => random.pick([0, 0, 0.1, 0.3, 0.7, 1])),
    partitions: random.pick([1, 1, 2, 3]),
    dispatchers: random.between(1, 3),
    retries: random.between(1, 2),
    latencyMs: random.pick([5, 50, 500, 3_000]),
    faultRate: random.pick([0.001, 0.005, 0.02, 0.1]),
    faults: random.between(0, 25),
    hasJumps,
    lossRate: random.pick([0, 0.01, 0.05, 0.2]),
    deferRate: random.pick([0, 0.05, 0.2]),
    gapRate: random.pick([0, 0, 0.1]),
    window: random.pick([2, 6, ROOMY]),
    webhookChanges: random.pick([0, 0, 1, 2, 4]),
    resends: random.pick([0, 0, 1, 3]),
  };
}

/** Nothing goes wrong but the endpoints, which never answer well: the schedule as it is promised. */
export function calmPlan(random: Random): Plan {
  return {
    ...drawPlan(random),
    successRates: [0, 0],
    latencyMs: 20,
    faultRate: 0,
    faults: 0,
    lossRate: 0,
    deferRate: 0,
    window: ROOMY,
    webhookChanges: 0,
    resends: 0,
  };
}
