const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const PARENT_CHECK_MS = 500;

/**
 * Resolves at the first signal, or when the bootstrap that started this process is gone (a supervisor without one can
 * not be stopped from its terminal any more). Later signals, such as the second copy of a terminal's Ctrl-C, do nothing.
 */
export function stopRequest(): Promise<string> {
  // After a SIGHUP the terminal is gone, and a write to it must not end the stop halfway.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return new Promise((resolve) => {
    for (const signal of SIGNALS)
      process.on(signal, () => {
        resolve(signal);
      });
    if (process.env.POSTHORN_PARENT_PID !== String(process.ppid)) return;
    const parentPid = process.ppid;
    const check = () => {
      if (process.ppid !== parentPid) resolve('the end of its parent');
    };
    setInterval(check, PARENT_CHECK_MS).unref();
  });
}
