/** How many attempts started in each 10 ms of the last second. All times are monotonic milliseconds. */
export interface SentLastSecond {
  /** A ring buffer: the count of time slot `n` is at `n % SLOTS`. */
  counts: Uint16Array;
  newestSlot: number;
}

const SLOT_MS = 10;
const SLOTS = 1_000 / SLOT_MS;

export function createSentLastSecond(): SentLastSecond {
  return { counts: new Uint16Array(SLOTS), newestSlot: -1 };
}

export function countSent(sent: SentLastSecond, nowMs: number): void {
  const { counts } = sent;
  const slot = slotOf(nowMs);
  const passed = Math.min(slot - sent.newestSlot, SLOTS);
  for (let back = 0; back < passed; back += 1) counts[(slot - back) % SLOTS] = 0;
  sent.newestSlot = Math.max(slot, sent.newestSlot);
  counts[slot % SLOTS] = (counts[slot % SLOTS] ?? 0) + 1;
}

/**
 * Returns how long, in milliseconds, until another attempt may start such that no second (less 10 ms)
 * has more than `perSecond`; 0 when it may start now. Most receivers limit a second, fixed or sliding:
 * what a late timer missed may be caught up within the same second, but not in the next one.
 */
export function untilRateAllowsMs(
  { counts, newestSlot }: SentLastSecond,
  perSecond: number,
  nowMs: number,
): number {
  const most = Math.max(1, Math.floor(perSecond));
  let count = 0;
  const oldestSlot = Math.max(0, slotOf(nowMs) - SLOTS + 1);
  for (let slot = newestSlot; slot >= oldestSlot; slot -= 1) {
    count += counts[slot % SLOTS] ?? 0;
    if (count >= most) return Math.max(0, (slot + SLOTS) * SLOT_MS - nowMs);
  }
  return 0;
}

function slotOf(nowMs: number): number {
  return Math.floor(nowMs / SLOT_MS);
}
