import {
  type DeferralDelays,
  formatDelay,
  parseDelay,
  type RetrySchedule,
} from '../delivery/schedule.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Records survive an outage of their reader of this length. */
const OUTAGE_MS = 7 * DAY_MS;

export interface TopicNames {
  messageCreated: string;
  deliveryFailed: string;
  retryDue: string;
  /** Attempts to endpoints that take a second or longer. */
  slowLane: string;
  /** Records that cannot be processed. */
  deadLetters: string;
  /** Deliveries whose last attempt failed. */
  exhaustedDeliveries: string;
  /** Notifications for the operator of the installation. */
  operatorEvents: string;
  /** Records of sources that cannot be accepted as messages (docs/ingest.md). */
  ingestRejected: string;
  /**
   * Delay topics of the retry schedule, by delay in milliseconds. Steps of equal delay share one.
   */
  parkedByDelayMs: ReadonlyMap<number, string>;
  /** Delay topics of deferrals, by delay in milliseconds. */
  deferredByDelayMs: ReadonlyMap<number, string>;
}

/** `retry`: the delay after a failed attempt. `deferred`: any other delay. */
export type DelayKind = 'retry' | 'deferred';

export interface DelayTopic {
  kind: DelayKind;
  delayMs: number;
}

/** How long a topic keeps its records. `wantedSettings` follow from this. */
export interface TopicSpec {
  name: string;
  retentionMs: number;
  /** With a shorter retention, Kafka could delete records before the services have read them. */
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
    exhaustedDeliveries: `${prefix}exhausted-deliveries`,
    operatorEvents: `${prefix}operator-events`,
    ingestRejected: `${prefix}ingest-rejected`,
    parkedByDelayMs: namesByDelay(beginningOf(prefix, 'retry'), schedule),
    deferredByDelayMs: namesByDelay(beginningOf(prefix, 'deferred'), deferralDelays),
  };
}

/** One process must read partition p of all these topics, so their numbers of partitions must be equal. */
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
 * Returns the delay topics among the existing ones, also those of earlier settings, where attempts may still wait.
 * They are mapped by name, because `retry.5s` and `deferred.5s` have the same delay.
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

const CREATED_KEPT_MS = 3 * DAY_MS;
const CREATED_SEGMENT_MS = 6 * HOUR_MS;

/** So long after it was written a record of `message-created` is removed at the latest: Kafka removes whole segments. */
export const CREATED_GONE_AFTER_MS = CREATED_KEPT_MS + CREATED_SEGMENT_MS;

/**
 * How long each topic keeps its records. `message-created` has the payloads of every message: three days. What is
 * unreadable or rejected has its payload until a person has handled it.
 */
export function topicSpecs(names: TopicNames): TopicSpec[] {
  return [
    // Payloads are promised to be gone after three days, so its segments are short.
    keeping(names.messageCreated, CREATED_KEPT_MS, { segmentMs: CREATED_SEGMENT_MS }),
    keeping(names.deliveryFailed, OUTAGE_MS),
    keeping(names.retryDue, OUTAGE_MS),
    keeping(names.slowLane, OUTAGE_MS),
    // No delivery waits in it: the operator chooses how long people have to handle a letter.
    keeping(names.deadLetters, 30 * DAY_MS, { leastRetentionMs: OUTAGE_MS }),
    keeping(names.exhaustedDeliveries, 30 * DAY_MS, { leastRetentionMs: OUTAGE_MS }),
    // No delivery depends on it.
    keeping(names.operatorEvents, OUTAGE_MS, { leastRetentionMs: HOUR_MS }),
    // As dead letters: nothing that was accepted waits in it.
    keeping(names.ingestRejected, 30 * DAY_MS, { leastRetentionMs: OUTAGE_MS }),
    ...delayTopicSpecs(names.parkedByDelayMs),
    ...delayTopicSpecs(names.deferredByDelayMs),
  ];
}

/** Adds the delay topics of earlier settings among the existing topics. */
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

/** The most bytes for one partition in a request to Kafka, see kafka-record-log.ts. */
export const MAX_SEND_BYTES = 524_288;
/** The default of Kafka: enough for a request with the framing of its records. */
const MAX_BATCH_BYTES = 1_048_588;

/** The required settings, in the order of tables. The operator chooses the others. */
export const TOPIC_SETTINGS = [
  'cleanup.policy',
  'retention.ms',
  'retention.bytes',
  'unclean.leader.election.enable',
  'min.insync.replicas',
  'message.timestamp.type',
  'compression.type',
  'max.message.bytes',
  'segment.ms',
] as const;

export type TopicSetting = (typeof TOPIC_SETTINGS)[number];

/** A topic, and how many copies of it there are. */
interface Replicated {
  spec: TopicSpec;
  replication: number;
}

/** Returns the required value of each setting, as Kafka writes it. docs/topics.md has the reasons. */
export function wantedSettings({
  spec: { retentionMs, segmentMs },
  replication,
}: Replicated): Record<TopicSetting, string> {
  return {
    'cleanup.policy': 'delete',
    'retention.ms': String(retentionMs),
    'retention.bytes': '-1',
    'unclean.leader.election.enable': 'false',
    'min.insync.replicas': String(Math.max(1, replication - 1)),
    // By the broker's clock: it refuses records that a producer dates more than an hour ahead,
    // and a service whose clock is wrong could neither publish nor park.
    'message.timestamp.type': 'LogAppendTime',
    // The broker decompresses the records of other producers, instead of each consumer.
    'compression.type': 'uncompressed',
    'max.message.bytes': String(MAX_BATCH_BYTES),
    'segment.ms': String(segmentMs),
  };
}

/**
 * `refuse`: in ordinary operation, or when one broker fails, records can be lost, or can be neither written nor read.
 * `warn`: a promise about age, disk or comfort is not kept.
 */
export type Severity = 'refuse' | 'warn';

interface Judgement {
  severity: Severity;
  /** The consequence of the value. */
  meaning: string;
}

/** Returns null when the value is as good as the required one. */
export function judgeSetting(
  setting: TopicSetting,
  value: string,
  topic: Replicated,
): Judgement | null {
  if (value === wantedSettings(topic)[setting]) return null;
  return JUDGES[setting](value, topic);
}

const refuse = (meaning: string): Judgement => ({ severity: 'refuse', meaning });
const warn = (meaning: string): Judgement => ({ severity: 'warn', meaning });

type Judge = (value: string, topic: Replicated) => Judgement | null;

const JUDGES: Record<TopicSetting, Judge> = {
  'cleanup.policy': (value) =>
    value.includes('compact')
      ? refuse('only the newest record of each webhook is kept, the others are lost')
      : warn('records are not deleted when their time is over'),
  'retention.ms': judgeRetention,
  'retention.bytes': (value) =>
    Number(value) < 0
      ? null
      : refuse('records of a backlog are deleted by size before they are delivered'),
  'unclean.leader.election.enable': (_value, { replication }) =>
    replication > 1
      ? refuse('a copy that lags may become leader, and what it does not have is lost')
      : warn('a copy that lags may become leader, once the topic has more than one copy'),
  'min.insync.replicas': judgeInSync,
  'message.timestamp.type': () =>
    warn('a service whose clock is wrong cannot publish, or its records expire too early'),
  'compression.type': () => warn('each consumer spends processor time on compressed records'),
  'max.message.bytes': (value) =>
    Number(value) < MAX_SEND_BYTES
      ? refuse(`Kafka refuses batches, which have up to ${MAX_SEND_BYTES} bytes`)
      : warn('requests are cut for batches of the wanted size'),
  'segment.ms': (value, { spec }) =>
    Number(value) <= spec.segmentMs
      ? null
      : warn('records stay longer than promised, by up to this time'),
};

function judgeRetention(value: string, { spec }: Replicated): Judgement {
  const ms = Number(value);
  if (ms >= 0 && ms < spec.leastRetentionMs) {
    return refuse('records are deleted before an outage of the promised length is over');
  }
  return ms >= 0 && ms < spec.retentionMs
    ? warn('records are deleted earlier than promised')
    : warn('records stay longer than promised, and need more disk');
}

function judgeInSync(value: string, { replication }: Replicated): Judgement {
  const count = Number(value);
  if (count > replication) return refuse('there are not so many copies, so nothing can be written');
  if (count < 2 && replication >= 3) {
    return refuse('a record on one broker counts as written, and is lost with it');
  }
  if (count === replication) return warn('nothing can be written while one broker is away');
  return warn('more brokers must fail before writing stops, fewer before records are lost');
}

/** The members of a group share the partitions of its topics. */
export interface ConsumerGroup {
  groupId: string;
  topics: readonly string[];
}

/** Every consumer group of one installation. */
export interface ConsumerGroups {
  /** Fresh messages and retries together, so that one dispatcher has partition p of both topics. */
  dispatcher: ConsumerGroup;
  /** A group of its own, so that a backlog of slow endpoints delays nothing else. */
  slowLane: ConsumerGroup;
  park: ConsumerGroup;
  /** Read the delay topics. One of them may have no topic. */
  releaseShort: ConsumerGroup;
  releaseLong: ConsumerGroup;
}

/** Topics with delays up to this have a consumer of their own, so that they never wait behind the long ones. */
const SHORT_MAX_MS = 60_000;

/**
 * `delayTopics` has all existing delay topics, also those of earlier settings. Both kinds share two consumers: each
 * further consumer would poll the broker and cost CPU without traffic.
 */
export function consumerGroups(
  prefix: string,
  topics: Pick<TopicNames, 'messageCreated' | 'retryDue' | 'slowLane' | 'deliveryFailed'>,
  delayTopics: ReadonlyMap<string, DelayTopic>,
): ConsumerGroups {
  const names = [...delayTopics];
  const namesWhere = (matches: (topic: DelayTopic) => boolean): string[] =>
    names.filter(([, topic]) => matches(topic)).map(([name]) => name);
  const { messageCreated, retryDue, slowLane, deliveryFailed } = topics;
  return {
    dispatcher: { groupId: `${prefix}dispatcher`, topics: [messageCreated, retryDue] },
    slowLane: { groupId: `${prefix}dispatcher-slow`, topics: [slowLane] },
    park: { groupId: `${prefix}retry-park`, topics: [deliveryFailed] },
    releaseShort: {
      groupId: `${prefix}retry-release-short`,
      topics: namesWhere(({ delayMs }) => delayMs <= SHORT_MAX_MS),
    },
    releaseLong: {
      groupId: `${prefix}retry-release-long`,
      topics: namesWhere(({ delayMs }) => delayMs > SHORT_MAX_MS),
    },
  };
}
