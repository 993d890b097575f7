import { createContiguousOffsets, type ContiguousOffsets } from './contiguous-offsets.ts';

/** Offsets of the partitions that this member owns, and how much of them is under work. */
export interface PartitionWindow {
  /**
   * The partition that a batch belongs to; null for a batch that must be left unread once, because
   * it may have been on its way since before the group changed.
   */
  arrive: (topic: string, partition: number, batch: BatchRange) => OwnedPartition | null;
  /** Records of the partition that were begun and are not covered by a commit. */
  begunIn: (topic: string, partition: number) => number;
  /** Forgets every partition that is not in `assignment`; another member answers for it now. */
  keepOnly: (assignment: Readonly<Record<string, number[]>>) => void;
  /** The group has changed: others may have read and committed meanwhile. */
  doubtAll: () => void;
  inFlightIn: (topic: string) => number;
  /** True when nothing is under work and what was done may be committed. */
  isQuiet: () => boolean;
  /** What has become committable since `markCommitted` was last told. */
  uncommitted: () => Commit[];
  markCommitted: (commits: readonly Commit[]) => void;
}

export interface BatchRange {
  firstOffset: number;
  /** The offset after the last record of the partition when the batch was read. */
  endOffset: number;
}

export interface OwnedPartition {
  topic: string;
  partition: number;
  offsets: ContiguousOffsets;
  /** Where the group would read on: the last commit, or where we began. */
  resumesAt: number;
  /** A former owner may have begun what lies before this offset. */
  inheritedBelow: number;
  isDoubted: boolean;
  wasLeftUnread: boolean;
}

export interface Commit {
  topic: string;
  partition: number;
  /** The next offset to read. */
  offset: number;
}

/**
 * How far a partition is read ahead of its commit. One stuck record holds the commit back, and after
 * a crash what lies behind it is looked up before it is sent: hence a bound. An attempt may wait for
 * 30 s and then take 15 s: at 2,000 records a second 90,000 follow it meanwhile, and its healthy
 * neighbours must not wait for it: hence not a smaller one. Finished records take two bits each.
 */
export const MAX_HELD = 100_000;

export function createPartitionWindow(): PartitionWindow {
  const owned = new Map<string, OwnedPartition>();
  const entryOf = (topic: string, partition: number) => owned.get(keyOf(topic, partition));
  return {
    arrive: (topic, partition, batch) => arrive(owned, { topic, partition }, batch),
    begunIn(topic, partition) {
      const entry = entryOf(topic, partition);
      return entry ? begunBeyondCommit(entry) : 0;
    },
    keepOnly(assignment) {
      for (const [key, { topic, partition }] of owned) {
        if (!assignment[topic]?.includes(partition)) owned.delete(key);
      }
    },
    doubtAll() {
      for (const entry of owned.values()) {
        entry.isDoubted = true;
        entry.wasLeftUnread = false;
      }
    },
    inFlightIn(topic) {
      let sum = 0;
      for (const entry of owned.values())
        if (entry.topic === topic) sum += entry.offsets.inFlight();
      return sum;
    },
    isQuiet: () => [...owned.values()].every(isQuiet),
    uncommitted: () => [...owned.values()].flatMap(commitOf),
    markCommitted(commits) {
      for (const { topic, partition, offset } of commits) {
        const entry = entryOf(topic, partition);
        // The answer to a commit of before a rebalance may come when we have begun further on.
        if (entry && offset > entry.resumesAt) entry.resumesAt = offset;
      }
    },
  };
}

/** No owner begins a record this far ahead of its commit, so none that follows inherits one there. */
export function hasRoomFor({ resumesAt }: OwnedPartition, offset: number): boolean {
  return offset < resumesAt + MAX_HELD;
}

/**
 * After a change of the group our offsets still hold when reading goes on between our last commit
 * and what we had done: nobody else was further, and what is under work here need not be done again.
 * Elsewhere everything begins anew, but only when a second batch says so: a fetch of kafkajs that
 * was on its way during the change is handed over after it, and would skip what is under work.
 */
function arrive(
  owned: Map<string, OwnedPartition>,
  { topic, partition }: { topic: string; partition: number },
  batch: BatchRange,
): OwnedPartition | null {
  const key = keyOf(topic, partition);
  const known = owned.get(key);
  if (known && !known.isDoubted) return known;
  const inheritedBelow = Math.min(batch.endOffset, batch.firstOffset + MAX_HELD);
  if (known && isOurs(known, batch.firstOffset)) {
    return Object.assign(known, { isDoubted: false, inheritedBelow });
  }
  if (known && !known.wasLeftUnread) {
    known.wasLeftUnread = true;
    return null;
  }
  const begun = {
    topic,
    partition,
    offsets: createContiguousOffsets(),
    resumesAt: batch.firstOffset,
    inheritedBelow,
    isDoubted: false,
    wasLeftUnread: false,
  };
  owned.set(key, begun);
  return begun;
}

function isOurs({ offsets, resumesAt }: OwnedPartition, firstOffset: number): boolean {
  return resumesAt <= firstOffset && firstOffset <= (offsets.committable() ?? resumesAt);
}

function isQuiet({ offsets, isDoubted, resumesAt }: OwnedPartition): boolean {
  if (offsets.inFlight() > 0) return false;
  return !isDoubted || (offsets.committable() ?? resumesAt) === resumesAt;
}

function commitOf({ topic, partition, offsets, resumesAt, isDoubted }: OwnedPartition): Commit[] {
  const offset = offsets.committable();
  return offset === null || offset <= resumesAt || isDoubted ? [] : [{ topic, partition, offset }];
}

function begunBeyondCommit({ offsets, resumesAt }: OwnedPartition): number {
  return offsets.held() + (offsets.committable() ?? resumesAt) - resumesAt;
}

function keyOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}
