/** How many attempts were begun in each 10 ms of the last second. All times are monotonic milliseconds. */
export interface SentLately {
  /** A ring; slot `n` of time is at `n % SLOTS`. */
  counts: Uint16Array;
  newestSlot: number;
}

const SLOT_MS = 10;
const SLOTS = 1_000 / SLOT_MS;

export function createSentLately(): SentLately {
  return { counts: new Uint16Array(SLOTS), newestSlot: -1 };
}

export function countSent(lately: SentLately, nowMs: number): void {
  const { counts } = lately;
  const slot = slotOf(nowMs);
  const passed = Math.min(slot - lately.newestSlot, SLOTS);
  for (let back = 0; back < passed; back += 1) counts[(slot - back) % SLOTS] = 0;
  lately.newestSlot = Math.max(slot, lately.newestSlot);
  counts[slot % SLOTS] = (counts[slot % SLOTS] ?? 0) + 1;
}

/**
 * How long until another one makes no second (less 10 ms) with more than `perSecond`, in milliseconds;
 * 0 when one may be begun now. Most limits are given for a second, fixed or sliding: what a late timer left out
 * may be made good within the second, and not in the next one.
 */
export function untilSecondHasRoomMs(
  { counts, newestSlot }: SentLately,
  perSecond: number,
  nowMs: number,
): number {
  const most = Math.max(1, Math.floor(perSecond));
  let sent = 0;
  const oldestSlot = Math.max(0, slotOf(nowMs) - SLOTS + 1);
  for (let slot = newestSlot; slot >= oldestSlot; slot -= 1) {
    sent += counts[slot % SLOTS] ?? 0;
    if (sent >= most) return Math.max(0, (slot + SLOTS) * SLOT_MS - nowMs);
  }
  return 0;
}

function slotOf(nowMs: number): number {
  return Math.floor(nowMs / SLOT_MS);
}
