export interface LoopDeps {
  /** Names the loop in the log. */
  name: string;
  everyMs: number;
  /** One round of the work. */
  run: () => Promise<void>;
  logger: { warn: (fields: object, text: string) => void };
}

/** Work that is done again and again, one round at a time. */
export interface Loop {
  /** Starts a round every `everyMs`, the first one after that time. A round still running is not joined by a second. */
  start: () => void;
  /** Runs one round, or joins the one that runs. Never rejects: a round that fails is logged. */
  tick: () => Promise<void>;
  /** Starts no further round. Resolves when the running one has ended. */
  stop: () => Promise<void>;
}

export function createLoop({ name, everyMs, run, logger }: LoopDeps): Loop {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;

  async function runLogged(): Promise<void> {
    try {
      await run();
    } catch (error) {
      logger.warn({ err: error, loop: name }, 'a round failed, trying again');
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
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}
