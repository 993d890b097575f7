import {
  createContiguousOffsets,
  type ContiguousOffsets,
} from '@posthorn/domain/contiguous-offsets.ts';

/** Offsets of the partitions that this member owns, and how much of them is under work. */
export interface PartitionWindow {
  of: (topic: string, partition: number) => ContiguousOffsets;
  /** Forgets every partition that is not in `assignment`; another member answers for it now. */
  keepOnly: (assignment: Readonly<Record<string, number[]>>) => void;
  forgetAll: () => void;
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
  committed: number | null;
}

export function createPartitionWindow(): PartitionWindow {
  const owned = new Map<string, Owned>();

  return {
    of(topic, partition) {
      const key = keyOf(topic, partition);
      const known = owned.get(key);
      if (known) return known.offsets;
      const offsets = createContiguousOffsets();
      owned.set(key, { topic, partition, offsets, committed: null });
      return offsets;
    },
    keepOnly(assignment) {
      for (const [key, { topic, partition }] of owned) {
        if (!assignment[topic]?.includes(partition)) owned.delete(key);
      }
    },
    forgetAll() {
      owned.clear();
    },
    inFlight() {
      let sum = 0;
      for (const { offsets } of owned.values()) sum += offsets.inFlight();
      return sum;
    },
    uncommitted: () =>
      [...owned.values()].flatMap(({ topic, partition, offsets, committed }) => {
        const offset = offsets.committable();
        return offset === null || offset === committed ? [] : [{ topic, partition, offset }];
      }),
    markCommitted(commits) {
      for (const { topic, partition, offset } of commits) {
        const entry = owned.get(keyOf(topic, partition));
        if (entry) entry.committed = offset;
      }
    },
  };
}

function keyOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}
