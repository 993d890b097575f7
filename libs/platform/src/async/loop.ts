import { withTimeout } from './pause.ts';

/** How long `stopSoon` waits for a tick. */
const STOP_MS = 2_000;

interface LoopDeps {
  /** Names the loop in the log. */
  name: string;
  everyMs: number;
  /** One tick of the work. The signal is that of the loop. */
  run: (signal: AbortSignal) => Promise<void>;
  logger: { warn: (fields: object, text: string) => void };
}

/** Work that is done again and again, one tick at a time. */
export interface Loop {
  /** Starts a tick every `everyMs`, the first one after that time. A tick that is due while another runs is left out. */
  start: () => void;
  /** Runs one tick, or joins the one that runs. Never rejects: a tick that fails is logged. */
  tick: () => Promise<void>;
  /** Aborts the signal and starts no further tick. Resolves when the running one has ended. */
  stop: () => Promise<void>;
}

export interface SignallingLoop extends Loop {
  /** Aborted by `stop`: for work that a tick leaves running, or that begins beside the ticks. */
  signal: AbortSignal;
}

export function createLoop({ name, everyMs, run, logger }: LoopDeps): SignallingLoop {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;

  async function runLogged(): Promise<void> {
    try {
      await run(stopping.signal);
    } catch (error) {
      logger.warn({ err: error, loop: name }, 'a tick failed, retrying');
    }
  }

  function tick(): Promise<void> {
    running ??= runLogged().finally(() => {
      running = null;
    });
    return running;
  }

  return {
    start() {
      timer ??= setInterval(() => void tick(), everyMs);
    },
    tick,
    signal: stopping.signal,
    async stop() {
      stopping.abort();
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}

/**
 * Stops a loop whose tick a store may delay, and waits for the tick for two seconds at most: it may be repeated, and the
 * steps of the stop that follow need the time. Never rejects.
 */
export async function stopSoon(loop: Pick<Loop, 'stop'>): Promise<void> {
  await withTimeout(loop.stop(), STOP_MS).catch(() => undefined);
}

/** A tick that is repeated. */
export interface Ticker {
  stop: () => void;
}

/**
 * Calls `tick` every `everyMs`, the first time after that time, until it is stopped. Does not keep the
 * process alive.
 *
 * For synchronous ticks. Work that awaits a store may fail, and belongs in a loop, which logs its failures and
 * runs one tick at a time. A synchronous tick that throws is a fault of the
 * program, and ends the process.
 */
export function startTicker(everyMs: number, tick: () => void): Ticker {
  const timer = setInterval(tick, everyMs).unref();
  return {
    stop() {
      clearInterval(timer);
    },
  };
}

/** All entries are visited within this many calls, and these many in each call at least. */
const SLICES = 50;
const MIN_SLICE = 64;

/**
 * Returns a function that visits the next slice of the map with each call, and begins again at its end. Entries may be
 * added and removed meanwhile.
 */
export function walkInSlices<Key, Value>(
  map: ReadonlyMap<Key, Value>,
): (visit: (value: Value, key: Key) => void) => void {
  let entries = map.entries();
  return (visit) => {
    let left = Math.max(MIN_SLICE, Math.ceil(map.size / SLICES));
    for (let next = entries.next(); ; next = entries.next()) {
      if (next.done) {
        entries = map.entries();
        return;
      }
      const [key, value] = next.value;
      visit(value, key);
      left -= 1;
      if (left === 0) return;
    }
  };
}
