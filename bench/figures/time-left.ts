/** Divides the time of a run among its parts that wait for something. */
export interface TimeLeft {
  /** Returns `seconds`, or what is left of the run without `laterSeconds` if that is less; at least 15. */
  atMost: (seconds: number, laterSeconds: number) => number;
}

/** Even a run that is late waits this long, so that its last figures are meaningful. */
const MIN_SECONDS = 15;

export function createTimeLeft(runSeconds: number, nowMs: () => number): TimeLeft {
  const endMs = nowMs() + runSeconds * 1_000;
  return {
    atMost(seconds, laterSeconds) {
      const leftSeconds = (endMs - nowMs()) / 1_000 - laterSeconds;
      return Math.round(Math.min(seconds, Math.max(MIN_SECONDS, leftSeconds)));
    },
  };
}
