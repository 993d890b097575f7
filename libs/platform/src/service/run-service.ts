import { setMaxListeners } from 'node:events';
import type { EventLoopUtilization } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Registry } from 'prom-client';
import type { z } from 'zod';
import { createKeepTrying, type KeepTrying } from '../async/keep-trying.ts';
import { startTicker } from '../async/loop.ts';
import { abortedAfter, TimeoutError, withTimeout } from '../async/pause.ts';
import { parseConfig } from './config.ts';
import { messageOf, StartupError } from './errors.ts';
import { createLogger, type Logger } from './logger.ts';
import { createRegistry } from './metrics.ts';

/** Settings that every service has. */
export interface ProcessSettings {
  LOG_LEVEL: string;
  DRAIN_TIMEOUT_MS: number;
}

export interface ServiceContext<Config> {
  config: Config;
  logger: Logger;
  lifecycle: Lifecycle;
  registry: Registry;
  /** Retries until the stop begins. */
  keepTrying: KeepTrying;
  /** Retries until DRAIN_TIMEOUT_MS after that: for what must be recorded before the process ends. */
  keepTryingWhileDraining: KeepTrying;
}

/** A stop may take the drain timeout and this much more to commit, leave groups and close connections. */
const CLOSING_MS = 10_000;

/**
 * Runs one service from its environment to its exit code: settings, logger, signals, then `start`. The process is its
 * own: it ends with the service, and its garbage is collected while it is idle.
 * A start that fails prints one message on standard error, runs the steps of the stop and exits with 1.
 * Calls `takeOver` once the service itself ends on signals: there must be a handler at any time.
 */
export async function runService<Schema extends z.ZodObject>(
  name: string,
  schema: Schema,
  start: (context: ServiceContext<z.infer<Schema> & ProcessSettings>) => Promise<void>,
  takeOver: () => void,
): Promise<void> {
  try {
    const config = parseConfig(name, schema, process.env) as z.infer<Schema> & ProcessSettings;
    const logger = createLogger(name, config.LOG_LEVEL);
    const context = createServiceContext(name, config, logger, (code) => process.exit(code));
    endOnSignals(context.lifecycle, logger);
    takeOver();
    context.lifecycle.onStop('garbage collection when idle', collectWhenIdle());
    await startInContext(context, start, (error) => {
      reportFailedStart(name, error);
    });
  } catch (error) {
    reportFailedStart(name, error);
    process.exit(1);
  }
}

/** Creates what a service starts with. `exit` is called at the end of its stop, with its exit code. */
export function createServiceContext<Config extends ProcessSettings>(
  name: string,
  config: Config,
  logger: Logger,
  exit: (code: number) => void,
): ServiceContext<Config> {
  const lifecycle = createLifecycle(logger, {
    stopTimeoutMs: config.DRAIN_TIMEOUT_MS + CLOSING_MS,
    exit,
  });
  const keepTrying = createKeepTrying({ logger, signal: lifecycle.stopping });
  const drained = abortedAfter(lifecycle.stopping, config.DRAIN_TIMEOUT_MS);
  const keepTryingWhileDraining = createKeepTrying({ logger, signal: drained });
  const registry = createRegistry(name);
  return { config, logger, lifecycle, registry, keepTrying, keepTryingWhileDraining };
}

/**
 * Starts a service; it is ready afterwards unless its stop has begun. When the start fails, passes its error to `onFailed`
 * and runs the steps of the stop.
 */
export async function startInContext<Config>(
  context: ServiceContext<Config>,
  start: (context: ServiceContext<Config>) => Promise<void>,
  onFailed: (error: unknown) => void,
): Promise<void> {
  const { lifecycle, logger } = context;
  try {
    await start(context);
    lifecycle.markReady();
    if (lifecycle.isReady()) logger.info('ready');
  } catch (error) {
    // The stop closes what the start is about to use.
    if (lifecycle.stopping.aborted) return;
    onFailed(error);
    await lifecycle.shutDown('the start failed', 1);
  }
}

function endOnSignals(lifecycle: Lifecycle, logger: Logger): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => void lifecycle.shutDown(signal, 0));
  }
  const crash = (error: unknown): void => {
    logger.fatal({ err: error }, 'unexpected error');
    void lifecycle.shutDown('unexpected error', 1);
  };
  process.on('unhandledRejection', crash);
  process.on('uncaughtException', crash);
}

function reportFailedStart(name: string, error: unknown): void {
  const text = error instanceof StartupError ? error.message : `${name}: ${messageOf(error)}`;
  process.stderr.write(`${text}\n`);
}

export interface Lifecycle {
  /**
   * Registers a step of the stop. Steps run one after the other, the newest first. A step that does not
   * end is left behind while there is time for the others.
   */
  onStop: (name: string, stop: () => Promise<void> | void) => void;
  /** True from the end of the start until a stop begins. */
  isReady: () => boolean;
  markReady: () => void;
  /** Stores what the start waits for; null when it goes on. */
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

/** Kept for each step that is still to come: enough to close a connection to a store that responds. */
const RESERVED_MS = 500;

/**
 * Creates the lifecycle of a service. A stop ends within `stopTimeoutMs` and with its exit code,
 * whatever its steps wait for: a store that does not respond is no fault of the process, and what it
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

export interface MemoryState {
  /** The share of time since the last check in which the event loop was busy, from 0 to 1. */
  busyShare: number;
  residentBytes: number;
  /** Resident bytes after the last collection; null before the first. */
  keptBytes: number | null;
  /** Time since the last collection of a process that had grown; null when it was collected again since. */
  sinceGrownMs: number | null;
}

/** Below this share the process is idle, and a pause of some 100 ms delays next to nothing. */
const IDLE_BELOW = 0.1;
/**
 * Growth since the last collection that makes another one worthwhile: the size to which the young generation grows
 * without a burst. A collection takes 50 to 100 ms; with 10 MiB an idle retry service made one every 10 s.
 */
const GROWN_BY_BYTES = 32 * 1024 * 1024;
const EVERY_MS = 10_000;
/** Caches keep entries for up to 60 s, so a collection when the process becomes idle finds them full. */
const AGAIN_AFTER_MS = 90_000;
/**
 * An ordinary collection leaves freed pages in V8's pool, and a process that allocates a little ten
 * times a second never gives them back: 398 MiB resident with 41 in use, 65 after this one.
 */
const LAST_RESORT = { type: 'major', flavor: 'last-resort' };

export function isWorthCollecting(state: MemoryState): boolean {
  if (state.busyShare >= IDLE_BELOW) return false;
  return hasGrown(state) || (state.sinceGrownMs ?? 0) >= AGAIN_AFTER_MS;
}

function hasGrown({ residentBytes, keptBytes }: MemoryState): boolean {
  return keptBytes === null || residentBytes > keptBytes + GROWN_BY_BYTES;
}

/**
 * Collects garbage while the process is idle. V8 collects when memory is allocated, and an idle process
 * allocates none: after a burst the dispatcher kept 638 MB for as long as it was idle, of which 326 were
 * in use. Returns a function that stops it.
 */
export function collectWhenIdle(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  let keptBytes: number | null = null;
  let grownAtMs: number | null = null;
  const check = (): void => {
    const now = performance.eventLoopUtilization();
    const { utilization: busyShare } = performance.eventLoopUtilization(now, before);
    before = now;
    const nowMs = performance.now();
    const sinceGrownMs = grownAtMs === null ? null : nowMs - grownAtMs;
    const state = { busyShare, residentBytes: process.memoryUsage.rss(), keptBytes, sinceGrownMs };
    if (!isWorthCollecting(state)) return;
    grownAtMs = hasGrown(state) ? nowMs : null;
    collect(LAST_RESORT);
    keptBytes = process.memoryUsage.rss();
  };
  return startTicker(EVERY_MS, check).stop;
}
