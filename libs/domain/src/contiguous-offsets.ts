/**
 * Which offset of one partition may be committed while its records finish in any order.
 * Offsets arrive in growing order, possibly with gaps (compaction, transaction markers).
 */
export interface ContiguousOffsets {
  /** Takes an offset under work; false when it is already held or done (a refetch after a rebalance). */
  begin: (offset: number) => boolean;
  finish: (offset: number) => void;
  /** Ends the work without a result: no longer in flight, and never committed past. */
  abandon: (offset: number) => void;
  /** The next offset to read after everything before it is done; null when nothing has finished yet. */
  committable: () => number | null;
  /** Records begun and not yet finished. */
  inFlight: () => number;
  /** Records held back from a commit: in flight, or done behind one that is. */
  held: () => number;
}

export function createContiguousOffsets(): ContiguousOffsets {
  // A Map keeps insertion order, which is offset order: the head is the oldest unfinished record.
  const done = new Map<number, boolean>();
  const running = new Set<number>();
  let highest = -1;
  let next: number | null = null;

  function advance(): void {
    for (const [offset, isDone] of done) {
      if (!isDone) return;
      done.delete(offset);
      next = offset + 1;
    }
  }

  return {
    begin(offset) {
      if (offset <= highest) return false;
      highest = offset;
      running.add(offset);
      done.set(offset, false);
      return true;
    },
    finish(offset) {
      if (!running.delete(offset)) return;
      done.set(offset, true);
      advance();
    },
    abandon: (offset) => {
      running.delete(offset);
    },
    committable: () => next,
    inFlight: () => running.size,
    held: () => done.size,
  };
}
