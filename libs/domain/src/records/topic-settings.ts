import type { TopicSpec } from './topics.ts';

/** No request to Kafka has more bytes for one partition, see kafka-record-log.ts. */
export const MAX_SEND_BYTES = 524_288;
/** The default of Kafka: room for a request and what surrounds its records. */
const MAX_BATCH_BYTES = 1_048_588;

/** The settings that are pinned, in the order of tables. Others are left to the operator. */
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
export interface Replicated {
  spec: TopicSpec;
  replication: number;
}

/** Returns what each setting must be, as Kafka writes it. docs/topics.md has the reasons. */
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
    // The broker decompresses what others send: lz4, snappy and zstd would end the consumers.
    'compression.type': 'uncompressed',
    'max.message.bytes': String(MAX_BATCH_BYTES),
    'segment.ms': String(segmentMs),
  };
}

/**
 * `refuse`: records can be lost, or nobody can write or read them, in ordinary operation or when one broker
 * fails. `warn`: a promise about age, disk or comfort is not kept.
 */
export type Severity = 'refuse' | 'warn';

export interface Judgement {
  severity: Severity;
  /** What the value leads to. */
  meaning: string;
}

/** Returns null when the value serves as well as the wanted one. */
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
  'compression.type': judgeCompression,
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

/** What the consumers can read without a codec of their own. */
const READABLE = new Set(['gzip', 'producer']);

function judgeCompression(value: string): Judgement {
  return READABLE.has(value)
    ? warn('a record of another producer may end the consumers, or cost processor time')
    : refuse('the broker compresses the records so that no consumer can read them');
}
