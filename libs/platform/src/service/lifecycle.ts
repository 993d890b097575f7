import { setMaxListeners } from 'node:events';
import type { Logger } from './logger.ts';

export interface Lifecycle {
  /** Registers a step of the stop. Steps run one after the other, the newest first. */
  onStop: (name: string, stop: () => Promise<void> | void) => void;
  /** True from the end of the start until a stop begins. */
  isReady: () => boolean;
  markReady: () => void;
  /** Aborted when the stop begins, before its first step. Ends retries, so that a drain is not spent on them. */
  stopping: AbortSignal;
  /** Runs the steps of the stop and ends the process. The first call decides the exit code. */
  shutDown: (reason: string, exitCode: number) => Promise<void>;
}

interface Stop {
  name: string;
  stop: () => Promise<void> | void;
}

/** Creates the lifecycle of a service. A stop that takes longer than `stopTimeoutMs` ends with `exit` at once. */
export function createLifecycle(
  logger: Logger,
  { stopTimeoutMs, exit }: { stopTimeoutMs: number; exit: (code: number) => void },
): Lifecycle {
  const stops: Stop[] = [];
  const stopping = new AbortController();
  // Each retry that waits listens to it.
  setMaxListeners(0, stopping.signal);
  let isReady = false;
  let ending: Promise<void> | null = null;

  async function stopAll(reason: string, exitCode: number): Promise<void> {
    isReady = false;
    stopping.abort();
    logger.info({ reason }, 'stopping');
    const forced = setTimeout(() => {
      logger.error({ stopTimeoutMs }, 'the stop took too long, exiting now');
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
      isReady = !stopping.signal.aborted;
    },
    stopping: stopping.signal,
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
