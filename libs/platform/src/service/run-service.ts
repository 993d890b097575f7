import type { Registry } from 'prom-client';
import type { z } from 'zod';
import { abortedAfter } from '../async/until-aborted.ts';
import { createKeepTrying, type KeepTrying } from '../async/keep-trying.ts';
import { collectWhenIdle } from '../memory/collect-when-idle.ts';
import { parseConfig } from './settings/config.ts';
import { messageOf, StartupError } from './errors.ts';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import { createLogger, type Logger } from './logger.ts';
import { createRegistry } from './metrics.ts';

/** Settings that every service has. */
interface ProcessSettings {
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
 * Runs one service from its environment to its exit code: settings, logger, signals, then `start`.
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
    const lifecycle = createLifecycle(logger, {
      stopTimeoutMs: config.DRAIN_TIMEOUT_MS + CLOSING_MS,
      exit: (code) => process.exit(code),
    });
    endOnSignals(lifecycle, logger);
    takeOver();
    const keepTrying = createKeepTrying({ logger, signal: lifecycle.stopping });
    const drained = abortedAfter(lifecycle.stopping, config.DRAIN_TIMEOUT_MS);
    const keepTryingWhileDraining = createKeepTrying({ logger, signal: drained });
    const registry = createRegistry(name);
    const context = { config, logger, lifecycle, registry, keepTrying, keepTryingWhileDraining };
    await startOrUndo(context, start);
  } catch (error) {
    reportFailedStart(name, error);
    process.exit(1);
  }
}

async function startOrUndo<Config>(
  context: ServiceContext<Config>,
  start: (context: ServiceContext<Config>) => Promise<void>,
): Promise<void> {
  try {
    await start(context);
    context.lifecycle.onStop('garbage collection when idle', collectWhenIdle());
    context.lifecycle.markReady();
    if (context.lifecycle.isReady()) context.logger.info('ready');
  } catch (error) {
    // The stop closes what the start is about to use.
    if (context.lifecycle.stopping.aborted) return;
    reportFailedStart(String(context.logger.bindings().service), error);
    await context.lifecycle.shutDown('the start failed', 1);
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
