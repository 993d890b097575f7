import { withTimeout } from './pause.ts';

/** What is repeated. */
interface Repetition {
  stop: () => void;
}

/**
 * Calls `act` at each multiple of `everyMs` since the process began, so that all that a process repeats shares its wakes: an
 * idle dispatcher was woken 225 times a second by timers that each had a phase of its own, and a wake costs 0.1 ms. A call
 * that comes late does not move the next one.
 */
function repeat(
  everyMs: number,
  act: () => void,
  { keepsAlive }: { keepsAlive: boolean },
): Repetition {
  const nextAfter = (ms: number): number => (Math.floor(ms / everyMs) + 1) * everyMs;
  let dueMs = nextAfter(performance.now());
  let timer = schedule();

  function schedule(): NodeJS.Timeout {
    // In the past when the process stood still since `dueMs` was found.
    const next = setTimeout(run, Math.max(1, Math.ceil(dueMs - performance.now())));
    return keepsAlive ? next : next.unref();
  }

  function run(): void {
    dueMs = nextAfter(Math.max(dueMs, performance.now()));
    timer = schedule();
    act();
  }

  return {
    stop() {
      clearTimeout(timer);
    },
  };
}

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
  /** Starts a tick every `everyMs`, the first one within that time. A tick that is due while another runs is left out. */
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
  let repetition: Repetition | undefined;
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
      repetition ??= repeat(everyMs, () => void tick(), { keepsAlive: true });
    },
    tick,
    signal: stopping.signal,
    async stop() {
      stopping.abort();
      repetition?.stop();
      repetition = undefined;
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
export type Ticker = Repetition;

/**
 * Calls `tick` every `everyMs`, the first time within that time, until it is stopped. Does not keep the
 * process alive.
 *
 * For synchronous ticks. Work that awaits a store may fail, and belongs in a loop, which logs its failures and
 * runs one tick at a time. A synchronous tick that throws is a fault of the
 * program, and ends the process.
 */
export function startTicker(everyMs: number, tick: () => void): Ticker {
  return repeat(everyMs, tick, { keepsAlive: false });
}

export interface RestingTicker extends Ticker {
  /** Returns true when the ticker rested until now. */
  wake: () => boolean;
}

/** A ticker that rests from its start, and again from each tick that returns false, until it is woken. */
export function createRestingTicker(everyMs: number, tick: () => boolean): RestingTicker {
  let ticker: Ticker | null = null;
  const stop = (): void => {
    ticker?.stop();
    ticker = null;
  };
  return {
    stop,
    wake() {
      if (ticker) return false;
      ticker = startTicker(everyMs, () => {
        if (!tick()) stop();
      });
      return true;
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
