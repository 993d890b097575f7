import type { Logger } from './logger.ts';

export interface Lifecycle {
  /** Registers what undoes a step of the start; run newest first. */
  onStop: (name: string, stop: () => Promise<void> | void) => void;
  /** True from the end of the start until a stop begins. */
  isReady: () => boolean;
  markReady: () => void;
  /** Ends the process after everything was stopped; the first call decides the exit code. */
  shutDown: (reason: string, exitCode: number) => Promise<void>;
}

interface Stop {
  name: string;
  stop: () => Promise<void> | void;
}

/** Start and end of one service. `exit` and `stopTimeoutMs` bound a stop that hangs. */
export function createLifecycle(
  logger: Logger,
  { stopTimeoutMs, exit }: { stopTimeoutMs: number; exit: (code: number) => void },
): Lifecycle {
  const stops: Stop[] = [];
  let isStopping = false;
  let isReady = false;
  let ending: Promise<void> | null = null;

  async function stopAll(reason: string, exitCode: number): Promise<void> {
    isReady = false;
    isStopping = true;
    logger.info({ reason }, 'stopping');
    const forced = setTimeout(() => {
      logger.error({ stopTimeoutMs }, 'the stop took too long, ending now');
      exit(exitCode || 1);
    }, stopTimeoutMs);
    for (const { name, stop } of stops.reverse()) await stopOne(name, stop, logger);
    clearTimeout(forced);
    logger.info({ exitCode }, 'stopped');
    exit(exitCode);
  }

  return {
    onStop: (name, stop) => stops.push({ name, stop }),
    isReady: () => isReady,
    markReady: () => {
      isReady = !isStopping;
    },
    shutDown: (reason, exitCode) => (ending ??= stopAll(reason, exitCode)),
  };
}

async function stopOne(name: string, stop: Stop['stop'], logger: Logger): Promise<void> {
  try {
    await stop();
  } catch (error) {
    logger.error({ err: error, step: name }, 'a step of the stop failed');
  }
}
