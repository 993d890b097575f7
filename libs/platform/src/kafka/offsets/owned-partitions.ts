import { createIsAssigned, keyOf, type ReadyRecords, type TopicPartition } from '../record-log.ts';
import {
  type ContiguousOffsets,
  createContiguousOffsets,
  type InFlightTotal,
} from './contiguous-offsets.ts';

/** The partitions that this member owns, and the offsets of their records in flight. */
export interface OwnedPartitions {
  /**
   * Returns the partition that a batch belongs to. Null for a batch that must be skipped once, because
   * it may have been fetched before the group changed.
   */
  ofBatch: (topic: string, partition: number, batch: BatchRange) => OwnedPartition | null;
  /** Records of the partition that were begun and are not covered by a commit. */
  uncommittedIn: (topic: string, partition: number) => number;
  /** Marks every partition that is not in `assignment` as gone, and forgets it: it belongs to another member now. */
  retainOnly: (assignment: Readonly<Record<string, number[]>>) => void;
  /** The group has changed: others may have read and committed meanwhile. */
  markAllStale: () => void;
  /**
   * Forgets the records that are begun, which are no longer ours, and returns the offset of the first one that is not done:
   * where reading is to resume. Null when the partition was read afresh since: it has its place.
   */
  giveBack: (owned: OwnedPartition) => number | null;
  /** Costs a look-up: it is called for each record, and a process may own thousands of partitions. */
  inFlightIn: (topic: string) => number;
  /** Records of the partition that are in flight. */
  inFlightOf: (partition: TopicPartition) => number;
  /** Walks over all partitions: how many of the topic have records in flight, or are `isWaiting`. */
  busyIn: (topic: string, isWaiting: (partition: TopicPartition) => boolean) => number;
  /** By topic: the records that failed and that nobody works on, see ContiguousOffsets.abandon. */
  abandoned: () => ReadonlyMap<string, ReadyRecords>;
  /** True when nothing is in flight and every finished record may be committed. */
  isIdle: () => boolean;
  /** The commits that have become possible since the last `markCommitted`. */
  uncommitted: () => Commit[];
  markCommitted: (commits: readonly Commit[]) => void;
}

interface BatchRange {
  firstOffset: number;
  /** The offset after the last record of the partition when the batch was read. */
  endOffset: number;
}

export interface OwnedPartition extends TopicPartition {
  offsets: ContiguousOffsets;
  /** Since when it is read here, in milliseconds since 1970. */
  sinceMs: number;
  /** True once it belongs to another member, or is read afresh. */
  isGone: boolean;
  /** Where the group would resume: the last commit, or the first offset read here. */
  resumesAt: number;
  reading: ReadingPosition;
  /** A former owner may have begun the records before this offset. */
  inheritedBelow: number;
  /** True from a change of the group until a batch shows where the group has resumed. */
  isStale: boolean;
  /** True while it is stale because its records were given back: the group is the same, so what is done may be committed. */
  isGivenBack: boolean;
  wasSkippedOnce: boolean;
  /** Since when the oldest abandoned record is ready, in milliseconds since 1970; Infinity without one. */
  abandonedSinceMs: number;
}

interface ReadingPosition {
  /** Where reading resumed at the earliest when the group changed: the last commit. */
  resumedAt: number;
  /** The offset after the last record that was taken from a batch. */
  readTo: number;
  /**
   * How many batches with a record may come from before or after the place where reading resumed. Two after a change
   * of the group: a fetch that was under way then is handed over first, and may be ahead of the second one.
   */
  unsettled: number;
}

export interface Commit extends TopicPartition {
  /** The next offset to read. */
  offset: number;
}

/**
 * How far a partition is read ahead of its commit. One stuck record stops the commit, and after a crash
 * everything behind it is looked up before it is sent: hence a bound. An attempt may wait for 30 s and
 * then take 15 s: at 2,000 records a second 90,000 follow it meanwhile, and healthy endpoints must not
 * wait for it: hence not a smaller one. Finished records take two bits each.
 */
export const MAX_UNCOMMITTED = 100_000;

/** `nowMs` returns milliseconds since 1970. */
export function createOwnedPartitions(nowMs: () => number): OwnedPartitions {
  const owned = new Map<string, OwnedPartition>();
  const inFlight = new Map<string, InFlightTotal>();
  return {
    ofBatch(topic, partition, batch) {
      const key = keyOf({ topic, partition });
      const known = owned.get(key);
      const found = known && resume(known, batch);
      if (found !== undefined) return found;
      known?.offsets.leaveTotal();
      const fresh = startAfresh({ topic, partition }, batch, nowMs(), totalOf(topic, inFlight));
      owned.set(key, fresh);
      return fresh;
    },
    uncommittedIn(topic, partition) {
      const entry = owned.get(keyOf({ topic, partition }));
      return entry ? entry.offsets.uncommitted() + nextOf(entry) - entry.resumesAt : 0;
    },
    retainOnly(assignment) {
      const isAssigned = createIsAssigned(assignment);
      for (const [key, entry] of owned) {
        if (isAssigned(entry)) continue;
        letGo(entry);
        owned.delete(key);
      }
    },
    markAllStale() {
      const stale = { isStale: true, isGivenBack: false, wasSkippedOnce: false };
      for (const entry of owned.values()) Object.assign(entry, stale);
    },
    giveBack(entry) {
      letGo(entry);
      if (owned.get(keyOf(entry)) !== entry) return null;
      owned.set(keyOf(entry), readAgain(entry, totalOf(entry.topic, inFlight)));
      return nextOf(entry);
    },
    inFlightIn: (topic) => inFlight.get(topic)?.records ?? 0,
    inFlightOf: (partition) => owned.get(keyOf(partition))?.offsets.inFlight() ?? 0,
    busyIn: (topic, isWaiting) => countBusy(owned.values(), topic, isWaiting),
    abandoned: () => abandonedByTopic(owned.values()),
    isIdle: () => [...owned.values()].every(isIdle),
    uncommitted: () => [...owned.values()].flatMap(commitOf),
    markCommitted(commits) {
      for (const commit of commits) {
        const entry = owned.get(keyOf(commit));
        // The answer to a commit from before a rebalance may come after a later one.
        if (entry && commit.offset > entry.resumesAt) entry.resumesAt = commit.offset;
      }
    },
  };
}

function countBusy(
  owned: Iterable<OwnedPartition>,
  topic: string,
  isWaiting: (partition: TopicPartition) => boolean,
): number {
  let busy = 0;
  for (const each of owned) {
    if (each.topic === topic && (each.offsets.inFlight() > 0 || isWaiting(each))) busy += 1;
  }
  return busy;
}

function abandonedByTopic(owned: Iterable<OwnedPartition>): Map<string, ReadyRecords> {
  const byTopic = new Map<string, ReadyRecords>();
  for (const { topic, offsets, abandonedSinceMs } of owned) {
    const sum = byTopic.get(topic) ?? { records: 0, oldestMs: Infinity };
    sum.records += offsets.abandoned();
    sum.oldestMs = Math.min(sum.oldestMs, abandonedSinceMs);
    byTopic.set(topic, sum);
  }
  return byTopic;
}

/** Returns the total of the topic, added when it is new. */
function totalOf(topic: string, inFlight: Map<string, InFlightTotal>): InFlightTotal {
  const total = inFlight.get(topic) ?? { records: 0 };
  inFlight.set(topic, total);
  return total;
}

/**
 * Returns false for a record too far ahead of the commit. No owner begins one there, so none that
 * follows inherits one there.
 */
export function canBegin({ resumesAt }: OwnedPartition, offset: number): boolean {
  return offset < resumesAt + MAX_UNCOMMITTED;
}

/** `readTo` is the offset after the last record that was taken from a batch. */
export function readOn({ reading }: OwnedPartition, readTo: number): void {
  reading.readTo = readTo;
  reading.unsettled = Math.max(0, reading.unsettled - 1);
}

/**
 * Returns the partition when the batch continues it, null when the batch must be skipped, and undefined when the
 * partition starts afresh.
 *
 * After a change of the group the offsets here still hold when reading resumes between the last commit and the last
 * record done here: no other member was further, and records in flight need not be done again. Elsewhere the partition
 * starts afresh, but only when a second batch says so: a fetch of kafkajs that was under way during the change is
 * handed over after it, and would skip what is in flight.
 */
function resume(known: OwnedPartition, batch: BatchRange): OwnedPartition | null | undefined {
  // Records from before a cut may be in memory only: the partition is not marked as gone.
  if (wasCut(known, batch)) return undefined;
  if (!known.isStale) return known;
  const { resumesAt } = known;
  if (resumesAt <= batch.firstOffset && batch.firstOffset <= nextOf(known)) {
    return Object.assign(known, {
      isStale: false,
      isGivenBack: false,
      inheritedBelow: inheritedBelow(batch),
      reading: { resumedAt: resumesAt, readTo: resumesAt, unsettled: 2 },
    });
  }
  if (!known.wasSkippedOnce) {
    known.wasSkippedOnce = true;
    return null;
  }
  // Records that were begun before are read again.
  known.isGone = true;
  return undefined;
}

function startAfresh(
  { topic, partition }: TopicPartition,
  batch: BatchRange,
  sinceMs: number,
  total: InFlightTotal,
): OwnedPartition {
  const { firstOffset } = batch;
  return {
    topic,
    partition,
    offsets: createContiguousOffsets(total),
    sinceMs,
    isGone: false,
    resumesAt: firstOffset,
    reading: { resumedAt: firstOffset, readTo: firstOffset, unsettled: 0 },
    inheritedBelow: inheritedBelow(batch),
    isStale: false,
    isGivenBack: false,
    wasSkippedOnce: false,
    abandonedSinceMs: Infinity,
  };
}

function letGo(entry: OwnedPartition): void {
  entry.isGone = true;
  entry.offsets.leaveTotal();
}

function readAgain(entry: OwnedPartition, total: InFlightTotal): OwnedPartition {
  return {
    ...entry,
    offsets: createContiguousOffsets(total, nextOf(entry)),
    isGone: false,
    // A fetch that is under way is handed over afterwards, and would skip what is given back.
    isStale: true,
    isGivenBack: true,
    wasSkippedOnce: false,
    abandonedSinceMs: Infinity,
  };
}

function inheritedBelow({ firstOffset, endOffset }: BatchRange): number {
  return Math.min(endOffset, firstOffset + MAX_UNCOMMITTED);
}

/**
 * True when the partition has lost records that were read here, as after the crash of all its brokers.
 * Other records get the same offsets then, and the client starts over without a change of the group. Records
 * that are read again are looked up before they are attempted.
 */
function wasCut({ offsets, reading, isStale }: OwnedPartition, batch: BatchRange): boolean {
  if (batch.endOffset <= offsets.highest()) return true;
  const { unsettled, resumedAt, readTo } = reading;
  return !isStale && batch.firstOffset < (unsettled > 0 ? resumedAt : readTo);
}

function nextOf({ offsets, resumesAt }: OwnedPartition): number {
  return offsets.committable() ?? resumesAt;
}

function isIdle(entry: OwnedPartition): boolean {
  if (entry.offsets.inFlight() > 0) return false;
  return !entry.isStale || nextOf(entry) === entry.resumesAt;
}

function commitOf(entry: OwnedPartition): Commit[] {
  const { topic, partition, offsets, resumesAt } = entry;
  const offset = offsets.committable();
  const mayCommit = !entry.isStale || entry.isGivenBack;
  return offset === null || offset <= resumesAt || !mayCommit ? [] : [{ topic, partition, offset }];
}
