import { createKeepTrying } from '@posthorn/platform/async/keep-trying.ts';

/** Retries as in a service that never stops; nothing is logged. */
export const keepTrying = createKeepTrying({
  logger: { warn: () => undefined },
  signal: new AbortController().signal,
});
