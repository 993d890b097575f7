/** The memory that one record uses while it is handled. */
export interface Held {
  /** Changes how many bytes the record carries. */
  setTo: (bytes: number) => void;
  release: () => void;
}

/** Counts the memory of the records that are handled at the moment. */
export interface RecordMemory {
  /** Counts a record that carries `bytes`, and an estimate of what is kept about it. */
  hold: (bytes: number) => Held;
  usedBytes: () => number;
  /** The used share of the budget; above 1 when it is exceeded. */
  usedShare: () => number;
  /** False from when the budget is exhausted until a quarter of it is free again. */
  hasRoom: () => boolean;
}

/** Ids, headers, promises and the entry in a queue, estimated. */
const RECORD_BYTES = 2_048;
/**
 * After the budget was exhausted, there is room again at this share. A fetch brings hundreds of records,
 * and those that are not handled are fetched again: with a single bound each finished record cost a fetch.
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
