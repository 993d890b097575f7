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

export interface TopicSpec {
  name: string;
  retentionMs: number;
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
    { name: names.messageCreated, retentionMs: 3 * DAY_MS },
    { name: names.deliveryFailed, retentionMs: OUTAGE_MS },
    { name: names.retryDue, retentionMs: OUTAGE_MS },
    { name: names.slowLane, retentionMs: OUTAGE_MS },
    { name: names.deadLetters, retentionMs: 30 * DAY_MS },
    ...delayTopicSpecs(names.parkedByDelayMs),
    ...delayTopicSpecs(names.deferredByDelayMs),
  ];
}

function delayTopicSpecs(nameByDelayMs: ReadonlyMap<number, string>): TopicSpec[] {
  return [...nameByDelayMs].map(([delayMs, name]) => ({
    name,
    retentionMs: delayMs + OUTAGE_MS,
  }));
}
