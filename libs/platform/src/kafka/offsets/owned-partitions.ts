import { keyOf, type ReadyRecords, type TopicPartition } from '../record-log.ts';
import { type ContiguousOffsets, createContiguousOffsets } from './contiguous-offsets.ts';

/** Offsets of the partitions that this member owns, and what of them is in flight. */
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
  inFlightIn: (topic: string) => number;
  /** The records that failed and that nobody works on, see ContiguousOffsets.abandon. */
  abandonedIn: (topic: string) => ReadyRecords;
  /** True when nothing is in flight and everything that is done may be committed. */
  isIdle: () => boolean;
  /** What has become committable since the last `markCommitted`. */
  uncommitted: () => Commit[];
  markCommitted: (commits: readonly Commit[]) => void;
}

interface BatchRange {
  firstOffset: number;
  /** The offset after the last record of the partition when the batch was read. */
  endOffset: number;
}

export interface OwnedPartition {
  topic: string;
  partition: number;
  offsets: ContiguousOffsets;
  /** Since when it is read here, in milliseconds since 1970. */
  sinceMs: number;
  /** True once it belongs to another member, or is read afresh. */
  isGone: boolean;
  /** Where the group would resume: the last commit, or the first offset read here. */
  resumesAt: number;
  reading: ReadingPosition;
  /** A former owner may have begun what lies before this offset. */
  inheritedBelow: number;
  /** True from a change of the group until a batch shows where the group has resumed. */
  isStale: boolean;
  wasSkippedOnce: boolean;
  /** Since when the oldest abandoned record is ready, in milliseconds since 1970; Infinity without one. */
  abandonedSinceMs: number;
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

interface State {
  owned: Map<string, OwnedPartition>;
  nowMs: () => number;
}

/** `nowMs` returns milliseconds since 1970. */
export function createOwnedPartitions(nowMs: () => number): OwnedPartitions {
  const owned = new Map<string, OwnedPartition>();
  const entryOf = (topic: string, partition: number) => owned.get(keyOf({ topic, partition }));
  return {
    ofBatch: (topic, partition, batch) => ofBatch({ owned, nowMs }, { topic, partition }, batch),
    uncommittedIn(topic, partition) {
      const entry = entryOf(topic, partition);
      return entry ? begunBeyondCommit(entry) : 0;
    },
    retainOnly(assignment) {
      for (const [key, entry] of owned) {
        if (assignment[entry.topic]?.includes(entry.partition)) continue;
        entry.isGone = true;
        owned.delete(key);
      }
    },
    markAllStale() {
      for (const entry of owned.values()) {
        entry.isStale = true;
        entry.wasSkippedOnce = false;
      }
    },
    inFlightIn(topic) {
      let sum = 0;
      for (const entry of owned.values())
        if (entry.topic === topic) sum += entry.offsets.inFlight();
      return sum;
    },
    abandonedIn: (topic) => abandonedIn(owned.values(), topic),
    isIdle: () => [...owned.values()].every(isIdle),
    uncommitted: () => [...owned.values()].flatMap(commitOf),
    markCommitted(commits) {
      for (const { topic, partition, offset } of commits) {
        const entry = entryOf(topic, partition);
        // The answer to a commit from before a rebalance may come after a later one.
        if (entry && offset > entry.resumesAt) entry.resumesAt = offset;
      }
    },
  };
}

/**
 * Returns false for a record too far ahead of the commit. No owner begins one there, so none that
 * follows inherits one there.
 */
export function canBegin({ resumesAt }: OwnedPartition, offset: number): boolean {
  return offset < resumesAt + MAX_UNCOMMITTED;
}

/**
 * After a change of the group the offsets here still hold when reading resumes between the last commit
 * and what was done here: no other member was further, and what is in flight need not be done again.
 * Elsewhere the partition starts afresh, but only when a second batch says so: a fetch of kafkajs that
 * was under way during the change is handed over after it, and would skip what is in flight.
 */
function ofBatch(
  { owned, nowMs }: State,
  { topic, partition }: TopicPartition,
  batch: BatchRange,
): OwnedPartition | null {
  const key = keyOf({ topic, partition });
  const found = owned.get(key);
  const known = found && !wasCut(found, batch) ? found : undefined;
  if (known && !known.isStale) return known;
  const inheritedBelow = Math.min(batch.endOffset, batch.firstOffset + MAX_UNCOMMITTED);
  if (known && resumesHere(known, batch.firstOffset)) {
    return Object.assign(known, {
      isStale: false,
      inheritedBelow,
      reading: resumeReadingAt(known.resumesAt),
    });
  }
  if (known && !known.wasSkippedOnce) {
    known.wasSkippedOnce = true;
    return null;
  }
  const fresh = {
    topic,
    partition,
    offsets: createContiguousOffsets(),
    sinceMs: nowMs(),
    isGone: false,
    resumesAt: batch.firstOffset,
    reading: startReadingAt(batch.firstOffset),
    inheritedBelow,
    isStale: false,
    wasSkippedOnce: false,
    abandonedSinceMs: Infinity,
  };
  // What was begun before is read again. After a cut it is not: its records may be in memory only.
  if (known) known.isGone = true;
  owned.set(key, fresh);
  return fresh;
}

/**
 * True when the partition has lost records that were read here, as after the crash of all its brokers.
 * Other records get the same offsets then, and reading starts over without a change of the group. What
 * is read again is looked up before it is attempted.
 */
function wasCut({ offsets, reading, isStale }: OwnedPartition, batch: BatchRange): boolean {
  if (batch.endOffset <= offsets.highest()) return true;
  return !isStale && wasSetBack(reading, batch.firstOffset);
}

function resumesHere({ offsets, resumesAt }: OwnedPartition, firstOffset: number): boolean {
  return resumesAt <= firstOffset && firstOffset <= (offsets.committable() ?? resumesAt);
}

function abandonedIn(owned: Iterable<OwnedPartition>, topic: string): ReadyRecords {
  const sum: ReadyRecords = { records: 0, oldestMs: Infinity };
  for (const { topic: ofTopic, offsets, abandonedSinceMs } of owned) {
    if (ofTopic !== topic) continue;
    sum.records += offsets.abandoned();
    sum.oldestMs = Math.min(sum.oldestMs, abandonedSinceMs);
  }
  return sum;
}

function isIdle({ offsets, isStale, resumesAt }: OwnedPartition): boolean {
  if (offsets.inFlight() > 0) return false;
  return !isStale || (offsets.committable() ?? resumesAt) === resumesAt;
}

function commitOf({ topic, partition, offsets, resumesAt, isStale }: OwnedPartition): Commit[] {
  const offset = offsets.committable();
  return offset === null || offset <= resumesAt || isStale ? [] : [{ topic, partition, offset }];
}

function begunBeyondCommit({ offsets, resumesAt }: OwnedPartition): number {
  return offsets.uncommitted() + (offsets.committable() ?? resumesAt) - resumesAt;
}

/** Where a partition is read. */
export interface ReadingPosition {
  /** Where reading resumed at the earliest when the group changed: the last commit. */
  resumedAt: number;
  /** The offset after the last record that was taken from a batch. */
  readTo: number;
  /** How many batches with a record may come from before or after the place where reading resumed. */
  unsettled: number;
}

/** At a partition that was not read here before. */
export function startReadingAt(offset: number): ReadingPosition {
  return { resumedAt: offset, readTo: offset, unsettled: 0 };
}

/**
 * At a partition that was read here before the group changed. A fetch that was under way then is handed
 * over first, and may be ahead of where reading resumes with the second one.
 */
export function resumeReadingAt(commit: number): ReadingPosition {
  return { resumedAt: commit, readTo: commit, unsettled: 2 };
}

/** `readTo` is the offset after the last record that was taken from the batch. */
export function readOn(position: ReadingPosition, readTo: number): void {
  position.readTo = readTo;
  position.unsettled = Math.max(0, position.unsettled - 1);
}

/** True when a client has started over, because the partition has lost what comes next. */
export function wasSetBack(position: ReadingPosition, firstOffset: number): boolean {
  return firstOffset < (position.unsettled > 0 ? position.resumedAt : position.readTo);
}
