import {
  DEFAULT_DEFERRAL_DELAYS,
  DEFAULT_RETRY_DELAYS,
  deferralDelaysSchema,
  retryScheduleSchema,
} from '@posthorn/domain/delivery/schedule.ts';
import { createIdFactory, type IdPrefix } from '@posthorn/domain/ids.ts';
import { delayTopicsAmong, topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import type { Plan } from './plan.ts';
import type { Random } from '../deterministic/random.ts';
import type { VirtualTime } from '../deterministic/virtual-time.ts';

/** 2023-11-14, the time at which all clocks of a simulation start. */
export const EPOCH_MS = 1_700_000_000_000;

export const SCHEDULE = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);
export const DEFERRAL_DELAYS = deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS);
export const TOPICS = topicNames('', SCHEDULE, DEFERRAL_DELAYS);
/** All delay topics by name, as the retry service finds them in Kafka. */
export const DELAY_TOPICS = delayTopicsAmong(
  '',
  topicSpecs(TOPICS).map(({ name }) => name),
);

/** What all parts of a simulation share. */
export interface World {
  plan: Plan;
  random: Random;
  time: VirtualTime;
  newId: (prefix: IdPrefix) => string;
  /** Adds a line to the trace. */
  trace: (who: string, what: string) => void;
  /** Ends the simulation because an invariant does not hold. Does not throw: the code under test would catch it. */
  reportViolation: (violation: string) => void;
  /** Called between any two steps of a process. May crash it, set its clock or rebalance one of its groups. */
  injectFault: (process: FaultTarget) => void;
}

export interface FaultTarget {
  name: string;
  isAlive: () => boolean;
  crash: () => void;
  setClock: (offsetMs: number) => void;
  /** Rebalances the consumer groups of this process, each with a probability of one half. */
  rebalanceGroup: () => void;
}

/** Returns a source of ids that depend only on the seed. */
export function createIds(random: Random, nowMs: () => number): World['newId'] {
  const randomBytes = (size: number): Buffer =>
    Buffer.from(Array.from({ length: size }, () => random.below(256)));
  return createIdFactory({ nowMs, randomBytes });
}
