/** The memory that one record takes while it is under work. */
export interface Held {
  /** What it carries takes this many bytes from now on. */
  setTo: (bytes: number) => void;
  release: () => void;
}

/** Weighs what is under work, from the reading of a record to its end. */
export interface RecordMemory {
  /** `bytes`: what the record carries; what we keep about it is added. */
  hold: (bytes: number) => Held;
  usedBytes: () => number;
  /** What of the budget is used; above 1 when it is exceeded. */
  usedShare: () => number;
  /** False from when the budget is used up until a quarter of it is free again. */
  hasRoom: () => boolean;
}

/** Ids, headers, promises and the place in a queue, by estimate. */
const RECORD_BYTES = 2_048;
/**
 * Once it was full it has room again at this share. A fetch brings hundreds of records, and what is
 * not taken of it is fetched again: with one bound, each record that ended cost a fetch.
 */
const ROOM_AGAIN_AT = 0.75;

export function createRecordMemory(budgetBytes: number): RecordMemory {
  let usedBytes = 0;
  let wasFull = false;
  const note = (changeBytes: number): void => {
    usedBytes += changeBytes;
    if (usedBytes >= budgetBytes) wasFull = true;
    else if (usedBytes <= budgetBytes * ROOM_AGAIN_AT) wasFull = false;
  };
  return {
    hold(bytes) {
      let heldBytes = RECORD_BYTES + bytes;
      note(heldBytes);
      const change = (newBytes: number): void => {
        note(newBytes - heldBytes);
        heldBytes = newBytes;
      };
      return {
        setTo: (carriedBytes) => {
          change(RECORD_BYTES + carriedBytes);
        },
        release: () => {
          change(0);
        },
      };
    },
    usedBytes: () => usedBytes,
    usedShare: () => usedBytes / budgetBytes,
    hasRoom: () => !wasFull,
  };
}
