import {
  DEFAULT_DEFERRAL_DELAYS,
  deferralDelaysSchema,
} from '@posthorn/domain/schedule/deferral-delays.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { createIdFactory } from '@posthorn/domain/ids.ts';
import {
  DEFAULT_RETRY_DELAYS,
  retryScheduleSchema,
} from '@posthorn/domain/schedule/retry-schedule.ts';
import { delayTopicsAmong, topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import type { Plan } from './plan.ts';
import type { Random } from '../chance/random.ts';
import type { VirtualTime } from '../chance/virtual-time.ts';

/** 2023-11-14; where the clocks of a simulation begin. */
export const EPOCH_MS = 1_700_000_000_000;

export const SCHEDULE = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);
export const DEFERRAL_DELAYS = deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS);
export const TOPICS = topicNames('', SCHEDULE, DEFERRAL_DELAYS);
/** What the retry service finds in Kafka: every delay topic, by its name. */
export const DELAY_TOPICS = delayTopicsAmong(
  '',
  topicSpecs(TOPICS).map(({ name }) => name),
);

/** What every part of one simulation shares. */
export interface World {
  plan: Plan;
  random: Random;
  time: VirtualTime;
  newId: (prefix: IdPrefix) => string;
  /** One line of the trace. */
  tell: (who: string, what: string) => void;
  /** Ends the simulation: an invariant does not hold. Never thrown, for the code under test would catch it. */
  fail: (violation: string) => void;
  /** Called between any two steps of a process; may end it, set its clock or call its groups together. */
  strike: (process: Strikable) => void;
}

export interface Strikable {
  name: string;
  isAlive: () => boolean;
  crash: () => void;
  setClock: (offsetMs: number) => void;
  /** Makes Kafka share out the partitions anew in one of the groups of this process. */
  disturbGroup: () => void;
}

/** Ids that depend on the seed alone. */
export function createIds(random: Random, nowMs: () => number): World['newId'] {
  const randomBytes = (size: number): Buffer =>
    Buffer.from(Array.from({ length: size }, () => random.below(256)));
  return createIdFactory({ nowMs, randomBytes });
}
