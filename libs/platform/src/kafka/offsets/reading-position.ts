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
