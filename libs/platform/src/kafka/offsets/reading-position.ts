/** Where a partition is read, from a change of the group to the next. */
export interface ReadingPosition {
  /** The lowest offset at which reading can go on without having been set back. */
  lowest: number;
  /** The first offset of the latest batch. */
  latest: number;
  /** How many batches in a row began no lower than the one before them. */
  inOrder: number;
}

/**
 * A fetch that was under way during a change of the group is handed over after it, and may be ahead of
 * where reading resumes. The batches behind these two are read one after the other.
 */
const AFTER_A_CHANGE = 2;

/** `resumesAt` is the lowest offset where reading can resume: the last commit. */
export function startReadingAt(resumesAt: number): ReadingPosition {
  return { lowest: resumesAt, latest: resumesAt, inOrder: 0 };
}

export function readOn(position: ReadingPosition, firstOffset: number): ReadingPosition {
  const inOrder = firstOffset >= position.latest ? position.inOrder + 1 : 0;
  const lowest = inOrder > AFTER_A_CHANGE ? firstOffset : position.lowest;
  return { lowest, latest: firstOffset, inOrder };
}

/** True when a client has started over, because the partition has lost what comes next. */
export function wasSetBack({ lowest }: ReadingPosition, firstOffset: number): boolean {
  return firstOffset < lowest;
}
