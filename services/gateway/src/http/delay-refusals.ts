/** Calls `send` later, so that clients which repeat a refused request at once cost little. */
export type DelayRefusal = (send: () => void) => void;

/** A client that ignores `Retry-After` repeats its request four times a second, instead of hundreds of times. */
const DELAY_MS = 250;
/** Refusals beyond these are sent at once: each delayed one keeps a connection and some kilobytes. */
const MAX_DELAYED = 2_000;

/** `after` calls the function once, after this many milliseconds: setTimeout. */
export function createDelayRefusal(after: (ms: number, run: () => void) => void): DelayRefusal {
  let delayed = 0;
  return (send) => {
    if (delayed >= MAX_DELAYED) {
      send();
      return;
    }
    delayed += 1;
    after(DELAY_MS, () => {
      delayed -= 1;
      send();
    });
  };
}
