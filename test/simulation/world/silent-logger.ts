import { createKeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';

/** The trace replaces the log of the services. */
export const LOGGER = createLogger('simulation', 'silent');

/** Its signal never aborts: simulated processes crash instead of stopping. */
export const keepTrying = createKeepTrying({
  logger: LOGGER,
  signal: new AbortController().signal,
});
