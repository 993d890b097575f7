import {
  createContiguousOffsets,
  type ContiguousOffsets,
} from '@posthorn/domain/contiguous-offsets.ts';

/** Offsets of the partitions that this member owns, and how much of them is under work. */
export interface PartitionWindow {
  /** The offsets of a partition whose next batch begins with `firstOffset`. */
  arrive: (topic: string, partition: number, firstOffset: number) => ContiguousOffsets;
  /** Records of the partition that hold a commit back: under work, or done behind one that is. */
  heldIn: (topic: string, partition: number) => number;
  /** Forgets every partition that is not in `assignment`; another member answers for it now. */
  keepOnly: (assignment: Readonly<Record<string, number[]>>) => void;
  /** We were out of the group: others may have read and committed meanwhile. */
  doubtAll: () => void;
  inFlight: () => number;
  /** What has become committable since `markCommitted` was last told. */
  uncommitted: () => Commit[];
  markCommitted: (commits: readonly Commit[]) => void;
}

export interface Commit {
  topic: string;
  partition: number;
  /** The next offset to read. */
  offset: number;
}

interface Owned {
  topic: string;
  partition: number;
  offsets: ContiguousOffsets;
  /** Where the group would read on: the last commit, or where we began. */
  resumesAt: number;
  isDoubted: boolean;
}

export function createPartitionWindow(): PartitionWindow {
  const owned = new Map<string, Owned>();
  return {
    arrive: (topic, partition, firstOffset) => arrive(owned, topic, partition, firstOffset),
    heldIn: (topic, partition) => owned.get(keyOf(topic, partition))?.offsets.held() ?? 0,
    keepOnly(assignment) {
      for (const [key, { topic, partition }] of owned) {
        if (!assignment[topic]?.includes(partition)) owned.delete(key);
      }
    },
    doubtAll() {
      for (const entry of owned.values()) entry.isDoubted = true;
    },
    inFlight() {
      let sum = 0;
      for (const { offsets } of owned.values()) sum += offsets.inFlight();
      return sum;
    },
    uncommitted: () => [...owned.values()].flatMap(commitOf),
    markCommitted(commits) {
      for (const { topic, partition, offset } of commits) {
        const entry = owned.get(keyOf(topic, partition));
        if (entry) entry.resumesAt = offset;
      }
    },
  };
}

/**
 * After a time out of the group our offsets still hold when reading goes on exactly where we had
 * committed: nobody else was further, and what is under work here need not be done again.
 */
function arrive(
  owned: Map<string, Owned>,
  topic: string,
  partition: number,
  firstOffset: number,
): ContiguousOffsets {
  const key = keyOf(topic, partition);
  const known = owned.get(key);
  if (known && (!known.isDoubted || known.resumesAt === firstOffset)) {
    known.isDoubted = false;
    return known.offsets;
  }
  const offsets = createContiguousOffsets();
  owned.set(key, { topic, partition, offsets, resumesAt: firstOffset, isDoubted: false });
  return offsets;
}

function commitOf({ topic, partition, offsets, resumesAt, isDoubted }: Owned): Commit[] {
  const offset = offsets.committable();
  return offset === null || offset === resumesAt || isDoubted ? [] : [{ topic, partition, offset }];
}

function keyOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}
