/**
 * An ordinary request waits for two or three rounds of the event loop. With a process that was busy for
 * half of the time, nine of ten took up to 2.2 times as long as with an idle one, and up to 1.6 times
 * when it was busy for a third; at nine tenths the median was 16 times as long.
 */
const BUSY = 0.4;
/** Rests become shorter while the process is busy for less than this part of the time. Between the two they stay. */
const CALM = 0.3;
const MAX_FACTOR = 16;
/** A factor below this becomes 0: rests of less than a twentieth of the work change nothing. */
const MIN_FACTOR = 0.05;

/**
 * Returns how long companies rest after their work, as a multiple of it, for the next tenth of a second.
 * It grows while the process is busy for more than two fifths of the time, and falls when it is calm.
 */
export function nextRestFactor(factor: number, busyPart: number): number {
  if (busyPart > BUSY) return Math.min(MAX_FACTOR, factor * 1.5 + 0.1);
  if (busyPart > CALM) return factor;
  const less = factor * 0.8;
  return less < MIN_FACTOR ? 0 : less;
}

/**
 * Returns the part of a company's work that is beyond its fair share, 0 to 1. `share` is its part of the
 * work of all companies, and `present` is how many of them there are. A company that is alone is never beyond
 * its share, nor are companies that all work alike: these may fill the process.
 */
export function excessOf(share: number, present: number): number {
  if (!(share > 0)) return 0;
  return Math.max(0, (share - 1 / present) / share);
}
