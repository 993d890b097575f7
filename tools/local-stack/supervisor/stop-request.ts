const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const PARENT_CHECK_MS = 500;

/**
 * Resolves with the reason on the first signal, or when the bootstrap process that started this one has exited: after
 * that, this process could not be stopped from its terminal. Later signals, such as a duplicate of Ctrl-C, are ignored.
 */
export function waitForStopRequest(): Promise<string> {
  // After a SIGHUP writes to the terminal fail, which must not interrupt the stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return new Promise((resolve) => {
    for (const signal of SIGNALS)
      process.on(signal, () => {
        resolve(signal);
      });
    if (process.env.POSTHORN_PARENT_PID !== String(process.ppid)) return;
    const parentPid = process.ppid;
    const check = () => {
      if (process.ppid !== parentPid) resolve('the parent process has exited');
    };
    setInterval(check, PARENT_CHECK_MS).unref();
  });
}
