/** How long the parts of a run may take that end when something has happened. */
export interface TimeLeft {
  /** So many seconds, or what is left of the run beside `laterSeconds`, and never less than a few. */
  atMost: (seconds: number, laterSeconds: number) => number;
}

/** Even a run that is late waits for this long, so that its last figures mean something. */
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
