import { setMaxListeners } from 'node:events';
import { TimeoutError, withTimeout } from '../async/with-timeout.ts';
import type { Logger } from './logger.ts';

export interface Lifecycle {
  /**
   * Registers a step of the stop. Steps run one after the other, the newest first. A step that does not
   * end is left behind while there is time for the others.
   */
  onStop: (name: string, stop: () => Promise<void> | void) => void;
  /** True from the end of the start until a stop begins. */
  isReady: () => boolean;
  markReady: () => void;
  /** Says what the start waits for, and null when it goes on. */
  waitFor: (reason: string | null) => void;
  waitsFor: () => string | null;
  /**
   * Aborted when the stop begins, before its first step. Ends retries, so that a drain is not spent on
   * them; only what must be recorded is tried further (keepTryingWhileDraining).
   */
  stopping: AbortSignal;
  /** Runs the steps of the stop and ends the process. The first call decides the exit code. */
  shutDown: (reason: string, exitCode: number) => Promise<void>;
}

interface Stop {
  name: string;
  stop: () => Promise<void> | void;
}

/** Kept for each step that is still to come: enough to close a connection to a store that answers. */
const RESERVED_MS = 500;

/**
 * Creates the lifecycle of a service. A stop ends within `stopTimeoutMs` and with its exit code,
 * whatever its steps wait for: a store that does not answer is no fault of the process, and what it
 * has not committed is done again by another one.
 */
export function createLifecycle(
  logger: Logger,
  { stopTimeoutMs, exit }: { stopTimeoutMs: number; exit: (code: number) => void },
): Lifecycle {
  const stops: Stop[] = [];
  const stopping = new AbortController();
  // Each retry that waits listens to it.
  setMaxListeners(0, stopping.signal);
  let isReady = false;
  let reason: string | null = null;
  let ending: Promise<void> | null = null;

  async function stopAll(reason: string, exitCode: number): Promise<void> {
    isReady = false;
    stopping.abort();
    logger.info({ reason }, 'stopping');
    const endsAtMs = performance.now() + stopTimeoutMs;
    // A start that is under way may still add steps.
    for (let step = stops.pop(); step; step = stops.pop()) {
      const reservedMs = stops.length * RESERVED_MS;
      await stopOne(step, endsAtMs - performance.now() - reservedMs, logger);
    }
    logger.info({ exitCode }, 'stopped');
    exit(exitCode);
  }

  return {
    onStop: (name, stop) => stops.push({ name, stop }),
    isReady: () => isReady,
    markReady: () => {
      isReady = !stopping.signal.aborted;
    },
    waitFor: (given) => {
      reason = given;
    },
    waitsFor: () => reason,
    stopping: stopping.signal,
    shutDown: (reason, exitCode) => (ending ??= stopAll(reason, exitCode)),
  };
}

async function stopOne({ name, stop }: Stop, timeoutMs: number, logger: Logger): Promise<void> {
  try {
    await withTimeout(Promise.resolve(stop()), Math.max(0, timeoutMs));
  } catch (error) {
    const text =
      error instanceof TimeoutError
        ? 'a step of the stop did not end in time, continuing without it'
        : 'a step of the stop failed';
    logger.error({ err: error, step: name }, text);
  }
}
