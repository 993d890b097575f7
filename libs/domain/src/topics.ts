import { formatDelay, parseDelay, type RetrySchedule } from './retry-schedule.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The longest outage of the retry service that a parked record must survive. */
const OUTAGE_MS = 7 * DAY_MS;

export interface TopicNames {
  messageCreated: string;
  deliveryFailed: string;
  retryDue: string;
  /** What found no room in the queue of its endpoint. */
  slowLane: string;
  deadLetters: string;
  /** One topic per distinct delay (key in milliseconds); steps of equal delay share it. */
  parkedByDelayMs: ReadonlyMap<number, string>;
}

export interface TopicSpec {
  name: string;
  retentionMs: number;
}

/** Every topic of one installation; `prefix` keeps installations on one Kafka apart. */
export function topicNames(prefix: string, schedule: RetrySchedule): TopicNames {
  return {
    messageCreated: `${prefix}message-created`,
    deliveryFailed: `${prefix}delivery-failed`,
    retryDue: `${prefix}retry-due`,
    slowLane: `${prefix}slow-lane`,
    deadLetters: `${prefix}dead-letters`,
    parkedByDelayMs: new Map(
      schedule.map((delayMs) => [delayMs, `${prefix}retry.${formatDelay(delayMs)}`]),
    ),
  };
}

/**
 * Every delay topic there is, by its delay in milliseconds: also those of an earlier schedule, where
 * failures may still be parked.
 */
export function delayTopicsAmong(
  prefix: string,
  existing: Iterable<string>,
): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const name of existing) {
    if (!name.startsWith(`${prefix}retry.`)) continue;
    const delayMs = parseDelay(name.slice(`${prefix}retry.`.length));
    if (delayMs !== null) found.set(delayMs, name);
  }
  return found;
}

/** How long each topic keeps its records. Payloads lie only in `message-created`: three days. */
export function topicSpecs(names: TopicNames): TopicSpec[] {
  return [
    { name: names.messageCreated, retentionMs: 3 * DAY_MS },
    { name: names.deliveryFailed, retentionMs: OUTAGE_MS },
    { name: names.retryDue, retentionMs: OUTAGE_MS },
    { name: names.slowLane, retentionMs: OUTAGE_MS },
    { name: names.deadLetters, retentionMs: 30 * DAY_MS },
    ...[...names.parkedByDelayMs].map(([delayMs, name]) => ({
      name,
      retentionMs: delayMs + OUTAGE_MS,
    })),
  ];
}
