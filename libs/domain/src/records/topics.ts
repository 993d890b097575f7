import type { DeferralDelays } from '../schedule/deferral-delays.ts';
import { formatDelay, parseDelay, type RetrySchedule } from '../schedule/retry-schedule.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A record must survive an outage of the service that reads it for this long. */
const OUTAGE_MS = 7 * DAY_MS;

export interface TopicNames {
  messageCreated: string;
  deliveryFailed: string;
  retryDue: string;
  /** Attempts to endpoints that take a second or longer. */
  slowLane: string;
  deadLetters: string;
  /** What the operator of the installation is told. */
  operatorEvents: string;
  /**
   * Delay topics of the retry schedule, by delay in milliseconds. Steps of equal delay share one.
   */
  parkedByDelayMs: ReadonlyMap<number, string>;
  /** Delay topics of deferrals, by delay in milliseconds. */
  deferredByDelayMs: ReadonlyMap<number, string>;
}

/** What a delay topic is for: `retry` parks after a failed attempt, `deferred` is any other delay. */
export type DelayKind = 'retry' | 'deferred';

export interface DelayTopic {
  kind: DelayKind;
  delayMs: number;
}

/** How long a topic keeps its records. Its settings follow from this, see topic-settings.ts. */
export interface TopicSpec {
  name: string;
  retentionMs: number;
  /** With a shorter retention, records would be deleted before the services must have read them. */
  leastRetentionMs: number;
  /** Kafka deletes segments, not records: the oldest record of a segment stays this much longer. */
  segmentMs: number;
}

/** Every topic of one installation. Installations that share a Kafka have different prefixes. */
export function topicNames(
  prefix: string,
  schedule: RetrySchedule,
  deferralDelays: DeferralDelays,
): TopicNames {
  return {
    messageCreated: `${prefix}message-created`,
    deliveryFailed: `${prefix}delivery-failed`,
    retryDue: `${prefix}retry-due`,
    slowLane: `${prefix}slow-lane`,
    deadLetters: `${prefix}dead-letters`,
    operatorEvents: `${prefix}operator-events`,
    parkedByDelayMs: namesByDelay(beginningOf(prefix, 'retry'), schedule),
    deferredByDelayMs: namesByDelay(beginningOf(prefix, 'deferred'), deferralDelays),
  };
}

/** Partition p of all of these must be read by one process, so their numbers of partitions must be equal. */
export function coPartitionedTopics({ messageCreated, retryDue, slowLane }: TopicNames): string[] {
  return [messageCreated, retryDue, slowLane];
}

function beginningOf(prefix: string, kind: DelayKind): string {
  return `${prefix}${kind}.`;
}

function namesByDelay(beginning: string, delaysMs: readonly number[]): ReadonlyMap<number, string> {
  return new Map(delaysMs.map((delayMs) => [delayMs, beginning + formatDelay(delayMs)]));
}

/**
 * The delay topics among the existing ones, by name. They include those of earlier settings, where
 * attempts may still wait. By name and not by delay, because `retry.5s` and `deferred.5s` are two.
 */
export function delayTopicsAmong(
  prefix: string,
  existing: Iterable<string>,
): ReadonlyMap<string, DelayTopic> {
  const found = new Map<string, DelayTopic>();
  for (const name of existing) {
    const topic = readDelayTopic(prefix, name, 'retry') ?? readDelayTopic(prefix, name, 'deferred');
    if (topic) found.set(name, topic);
  }
  return found;
}

function readDelayTopic(prefix: string, name: string, kind: DelayKind): DelayTopic | null {
  const beginning = beginningOf(prefix, kind);
  const delayMs = name.startsWith(beginning) ? parseDelay(name.slice(beginning.length)) : null;
  return delayMs === null ? null : { kind, delayMs };
}

/** How long each topic keeps its records. Only `message-created` has payloads: three days. */
export function topicSpecs(names: TopicNames): TopicSpec[] {
  return [
    // Payloads are promised to be gone after three days, so its segments are short.
    keeping(names.messageCreated, 3 * DAY_MS, { segmentMs: 6 * HOUR_MS }),
    keeping(names.deliveryFailed, OUTAGE_MS),
    keeping(names.retryDue, OUTAGE_MS),
    keeping(names.slowLane, OUTAGE_MS),
    // No delivery waits in it: how long a person has for a letter is the operator's choice.
    keeping(names.deadLetters, 30 * DAY_MS, { leastRetentionMs: OUTAGE_MS }),
    // As above: no delivery depends on it.
    keeping(names.operatorEvents, OUTAGE_MS, { leastRetentionMs: HOUR_MS }),
    ...delayTopicSpecs(names.parkedByDelayMs),
    ...delayTopicSpecs(names.deferredByDelayMs),
  ];
}

/** The same, with the delay topics of earlier settings among the existing topics. */
export function topicSpecsAmong(
  prefix: string,
  names: TopicNames,
  existing: Iterable<string>,
): TopicSpec[] {
  const specs = topicSpecs(names);
  const known = new Set(specs.map(({ name }) => name));
  const earlier = [...delayTopicsAmong(prefix, existing)].filter(([name]) => !known.has(name));
  return [...specs, ...earlier.map(([name, { delayMs }]) => delayTopicSpec(delayMs, name))];
}

function delayTopicSpecs(nameByDelayMs: ReadonlyMap<number, string>): TopicSpec[] {
  return [...nameByDelayMs].map(([delayMs, name]) => delayTopicSpec(delayMs, name));
}

function delayTopicSpec(delayMs: number, name: string): TopicSpec {
  return keeping(name, delayMs + OUTAGE_MS);
}

function keeping(name: string, retentionMs: number, others: Partial<TopicSpec> = {}): TopicSpec {
  return { name, retentionMs, leastRetentionMs: retentionMs, segmentMs: DAY_MS, ...others };
}
