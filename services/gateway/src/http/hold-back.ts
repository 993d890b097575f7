/** Calls `send` later, so that clients which repeat a refused request at once cost little. */
export type HoldBack = (send: () => void) => void;

/** A client that ignores `Retry-After` repeats its request four times a second, instead of hundreds of times. */
const HOLD_BACK_MS = 250;
/** Refusals beyond these are sent at once: each one that is held keeps a connection and some kilobytes. */
const MAX_HELD = 2_000;

/** `after` calls the function once, after this many milliseconds: setTimeout. */
export function createHoldBack(after: (ms: number, run: () => void) => void): HoldBack {
  let held = 0;
  return (send) => {
    if (held >= MAX_HELD) {
      send();
      return;
    }
    held += 1;
    after(HOLD_BACK_MS, () => {
      held -= 1;
      send();
    });
  };
}
