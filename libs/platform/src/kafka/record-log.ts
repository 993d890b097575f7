import type { KafkaMessage } from 'kafkajs';
import type { Unreadable } from './fetch/record-batches.ts';
import type { OutOfRange } from './patches/offset-out-of-range.ts';

/** A record as it was read. */
export interface LogRecord {
  topic: string;
  partition: number;
  offset: number;
  key: string;
  value: Buffer;
  headers: Readonly<Record<string, string>>;
  /**
   * True when a former owner of the partition may have begun this record and not committed it: the
   * partition had it already when it was assigned to this member, or when the group last changed.
   * Work with an effect outside is checked against the stored state before it is repeated.
   */
  isInherited: boolean;
  /** Since when this process reads the partition, in milliseconds since 1970. */
  ownedSinceMs: number;
  /** The time stamp of the record, in milliseconds since 1970. */
  timestampMs: number;
  /** The record byte for byte: key and headers of other programs may be no text. */
  stored: StoredParts;
  /** Why it, or records up to it, cannot be read; it has no key, value and headers then. */
  unreadable?: Unreadable;
}

/** The parts of a record. A header may be there more than once, and any of them may be missing. */
export type StoredParts = Pick<KafkaMessage, 'key' | 'value' | 'headers'>;

/** The part of a record from which the time follows at which it is ready. */
export type ReadyRecord = Pick<LogRecord, 'topic' | 'timestampMs' | 'headers'>;

/** When the records of a consumer become ready. */
export interface Readiness {
  /** When the record became ready, or will, in milliseconds since 1970. */
  sinceMs: (record: ReadyRecord) => number;
  /** How long after it was written a record of the topic is ready, in milliseconds; more than 0 for a delay topic. */
  afterMs: (topic: string) => number;
}

/** Records, and since when the oldest of them is ready (milliseconds since 1970; Infinity without one). */
export interface ReadyRecords {
  records: number;
  oldestMs: number;
}

export interface OutgoingRecord {
  topic: string;
  /** Records of one key share a partition. */
  key: string;
  value: Buffer;
  headers?: Readonly<Record<string, string>>;
}

/** A copy of a record of another program, byte for byte. */
export interface CopiedRecord extends StoredParts {
  topic: string;
}

/** How the members of a group share the partitions of its topics. */
export type Sharing =
  /** Partition p of every topic has one owner, and the same process owns it in every such group. */
  | { kind: 'together' }
  /** The process has the same partitions as in its group that shares them `together`. */
  | { kind: 'following' }
  /**
   * No member has two partitions more than another one. `after` is how many partitions groups of the same
   * processes share before this one: this group begins where they end, so that this holds for all of them together.
   */
  | { kind: 'evenly'; after: number };

/** How members share partitions by default. */
export const TOGETHER: Sharing = { kind: 'together' };

/**
 * Returns false once the partition of a record has gone to another member, or the consumer has left its group: unless
 * the record is finished, the next owner handles it again.
 */
export type IsOurs = () => boolean;

/** When a partition that was given back is read again. */
export interface ReadAgain {
  /** How long, in milliseconds, nothing of it is read; a minute at most. */
  pauseMs: number;
  /** Called after each pause. Unless it resolves with true, another pause follows, and still nothing is read. */
  mayReadOn: () => Promise<boolean>;
}

/**
 * Says that a record cannot be handled for now, by no fault: `handle` may reject with it. The consumer then holds nothing of its
 * partition, and reads on later from the first record that is not done: some behind it are handled once more.
 */
export class GiveBackError extends Error {
  override readonly name = 'GiveBackError';
  readonly readAgain: ReadAgain;

  constructor(reason: string, readAgain: ReadAgain) {
    super(reason);
    this.readAgain = readAgain;
  }
}

export interface ConsumeOptions {
  groupId: string;
  topics: readonly string[];
  /** `together` unless given. The member that leads the group decides for all. */
  sharing?: Sharing;
  /**
   * Handles one record. The record is done, and its offset may be committed, when the promise resolves.
   * After a rejection by an outage (see isOutage) it is called again, after GiveBackError when the record is read again. After
   * any other rejection, and when a stop comes first, the record stays uncommitted until the next start reads it again.
   * Records are handled concurrently and may end in any order.
   */
  handle: (record: LogRecord, isOurs: IsOurs) => Promise<void>;
  /** Returns ids for the log line of a failed record. Must not throw. */
  logFieldsIn?: (record: LogRecord) => object | null;
  /**
   * Returns how long, in milliseconds, the record and everything behind it in its partition must wait
   * before `handle` is called; 0 or less for not at all. Called again after the wait. `endOffset` is the
   * offset after the last record of the partition.
   */
  delayMs?: (record: LogRecord, endOffset: number) => number;
  /**
   * Whether `handle` takes records that cannot be read, see LogRecord. Unless given, one is a fault, and stays uncommitted:
   * Posthorn's own records can be read.
   */
  takesUnreadable?: boolean;
  /**
   * The listener is called when a partition of a topic, of this cluster or another one with the same group, does not have
   * the offset that the group wants. With it the group reads on from what is left; without it, from the beginning. Must not
   * throw.
   */
  outOfRange?: { cluster: string; listener: (found: OutOfRange) => void };
  /** When records become ready, for the backlog; unless given, as soon as they are written. */
  readiness?: Readiness;
  /**
   * Reading of a topic pauses when `pauseAt` of its records are in flight, and resumes at `resumeAt`. `isShared`: its
   * partitions with a backlog have equal parts of them, so that the page of one does not keep the others waiting.
   */
  inFlightLimits: { pauseAt: number; resumeAt: number; isShared?: true };
  /**
   * Returns false while nothing more of the topic is to be read, because the records in flight fill the memory or
   * the process is overloaded. Called for each record, and again each time that one is done.
   */
  mayRead?: (topic: string) => boolean;
  /**
   * How long, in milliseconds, a resumed partition may wait for its first fetch; 100 unless given. An
   * idle consumer sends a request to Kafka this often.
   */
  maxWaitMs?: number;
  /**
   * Called when the group is about to change, before a partition of this member can go to another. No
   * record is begun from then on until `onAssigned`, or until the broker confirms that it does not change.
   * Must not throw.
   */
  onRebalancing?: () => void;
  /** Called each time the broker has confirmed that this is a member and its group does not change. Must not throw. */
  onConfirmed?: () => void;
  /** Called each time this member has joined the group, with its partitions by topic. Must not throw. */
  onAssigned?: (assignment: Readonly<Record<string, readonly number[]>>) => void;
  /** Returns false while a store that `handle` needs is away: stalled partitions are no fault then. */
  areStoresUp?: () => boolean;
  /**
   * Returns true while the records of a partition wait for something that is no fault of this process: it does not count
   * as stalled then.
   */
  isWaiting?: (partition: TopicPartition) => boolean;
  /**
   * Returns true while records in flight may end here after a stop has left the group: whoever reads
   * them next waits for each of them. Unless given, a stop stays in the group for its whole drain, and
   * nobody reads its partitions meanwhile.
   */
  mayHandOver?: () => boolean;
  /**
   * How long, in milliseconds, a partition with records to read may go without a commit before its
   * consumer is replaced; 110,000 unless given.
   */
  stallMs?: number;
}

export interface Consumption {
  /**
   * Reads nothing more, waits up to `drainMs` for records in flight, commits, leaves the group. Leaves
   * first where records may be handed over.
   */
  stop: (drainMs: number) => Promise<void>;
  /** True while the consumer is a member of its group. */
  isRunning: () => boolean;
  /** False when a new consumer did not move a stalled partition either: the process must be restarted. */
  isAlive: () => boolean;
}

/** The log as the services use it. Kafka is the one adapter; the contract tests run it on the real broker. */
export interface RecordLog {
  /** Resolves when every in-sync replica has all records. After a rejection some may be stored. */
  publish: (records: readonly OutgoingRecord[]) => Promise<void>;
  consume: (options: ConsumeOptions) => Promise<Consumption>;
  close: () => Promise<void>;
  isConnected: () => boolean;
}

/** The two lengths that stand beside each header. */
const HEADER_BYTES = 10;

/** Returns how many bytes a record of another program has, its headers included: these may be more than the value. */
export function bytesOfStored({ key, value, headers = {} }: StoredParts): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0);
  for (const [name, header] of Object.entries(headers)) {
    const ofName = Buffer.byteLength(name) + HEADER_BYTES;
    // Null where it has no value, also as one of several.
    for (const each of [header].flat() as (Buffer | string | null | undefined)[]) {
      bytes += ofName + Buffer.byteLength(each ?? '');
    }
  }
  return bytes;
}

/** Returns key, value and headers of a record. A missing key is empty, a missing value too; headers become text. */
export function contentOf({
  key,
  value,
  headers,
}: Pick<KafkaMessage, 'key' | 'value' | 'headers'>): Pick<LogRecord, 'key' | 'value' | 'headers'> {
  return {
    key: key?.toString() ?? '',
    value: value ?? Buffer.alloc(0),
    headers: Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  };
}

export interface TopicPartition {
  topic: string;
  partition: number;
}

/** Partitions of one topic. */
export interface TopicPartitions {
  topic: string;
  partitions: number[];
}

/** Returns a key for maps. */
export function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}

/**
 * Returns a function that returns true for the partitions of the assignment, at the cost of a look-up: `includes` for
 * each of 50,000 records took 300 ms with 2,400 partitions.
 */
export function createIsAssigned(
  assignment: Readonly<Record<string, readonly number[]>>,
): (partition: TopicPartition) => boolean {
  const byTopic = new Map(
    Object.entries(assignment).map(([topic, partitions]) => [topic, new Set(partitions)]),
  );
  return ({ topic, partition }) => byTopic.get(topic)?.has(partition) === true;
}

/** Groups entries by their topic, and returns what `toGroup` makes of each group, in the order of their first entries. */
export function byTopic<Entry extends { topic: string }, Group>(
  entries: readonly Entry[],
  toGroup: (topic: string, ofTopic: Entry[]) => Group,
): Group[] {
  const grouped = Map.groupBy(entries, ({ topic }) => topic);
  return [...grouped].map(([topic, ofTopic]) => toGroup(topic, ofTopic));
}
