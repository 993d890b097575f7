const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Ends the process with 0 on SIGTERM and SIGINT while nothing is open yet. Returns a function that
 * removes these handlers. Without them a signal that comes while the modules load, which takes a second,
 * ends the process as killed; and process 1 of a container ignores it. This module imports nothing, so
 * that `main.ts` can call it before everything that takes time to load.
 */
export function exitOnSignals(): () => void {
  const exit = (): never => process.exit(0);
  for (const signal of SIGNALS) process.on(signal, exit);
  return () => {
    for (const signal of SIGNALS) process.off(signal, exit);
  };
}
