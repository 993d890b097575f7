/** Services that run in this process, and what stops them. */
const running = new Set<() => Promise<unknown>>();

/** Keeps what stops a service until it has ended. */
export function stopAtEnd(stop: () => Promise<unknown>, ended: Promise<unknown>): void {
  running.add(stop);
  void ended.then(() => running.delete(stop));
}

const atEnd: (() => void)[] = [];

/** Runs the step when the tests of this file have ended. Modules are loaded once for all files of a worker, hooks too. */
export function atEndOfFile(step: () => void): void {
  atEnd.push(step);
}

/** Stops the services that a test file has left running, and runs what it has left to do. */
export async function endFile(): Promise<void> {
  await Promise.all([...running].map((stop) => stop()));
  for (const step of atEnd.splice(0)) step();
}
