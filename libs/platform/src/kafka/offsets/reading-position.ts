/** Where a partition is read. */
export interface ReadingPosition {
  /** Where reading resumed at the earliest when the group changed: the last commit. */
  resumedAt: number;
  /** The offset after the last record that was taken from a batch. */
  readTo: number;
  /** True until the batch after the first one since the group changed. */
  mayBeAhead: boolean;
}

/** At a partition that was not read here before. */
export function startReadingAt(offset: number): ReadingPosition {
  return { resumedAt: offset, readTo: offset, mayBeAhead: false };
}

/**
 * At a partition that was read here before the group changed. A fetch that was under way then is handed
 * over first, and may be ahead of where reading resumes.
 */
export function resumeReadingAt(commit: number): ReadingPosition {
  return { resumedAt: commit, readTo: commit, mayBeAhead: true };
}

/** True when a client has started over, because the partition has lost what comes next. */
export function wasSetBack(position: ReadingPosition, firstOffset: number): boolean {
  return firstOffset < (position.mayBeAhead ? position.resumedAt : position.readTo);
}
