export interface SetbackDeps {
  /** The wall clock. */
  nowMs: () => number;
  monotonicMs: () => number;
  onSetback: (byMs: number) => void;
}

export interface SetbackWatch {
  /** One look; made once a second. */
  tick: () => void;
  stop: () => void;
}

const EVERY_MS = 1_000;
/** Heartbeats that are late by this much still keep a session of ten seconds. */
const BEARABLE_MS = 2_000;

/**
 * kafkajs times its heartbeats by the wall clock: when that is set back by an hour it sends none for
 * an hour, its group takes it for dead after ten seconds, and it reads on what is another's by then.
 */
export function watchForSetbacks({ nowMs, monotonicMs, onSetback }: SetbackDeps): SetbackWatch {
  const ahead = (): number => nowMs() - monotonicMs();
  let lastMs = ahead();
  const tick = (): void => {
    const byMs = lastMs - ahead();
    lastMs -= byMs;
    if (byMs > BEARABLE_MS) onSetback(byMs);
  };
  const timer = setInterval(tick, EVERY_MS);
  return {
    tick,
    stop() {
      clearInterval(timer);
    },
  };
}
