/** Services that run in this process, and what stops them. */
const running = new Set<() => Promise<unknown>>();

/** Keeps what stops a service until it has ended. */
export function stopAtEnd(stop: () => Promise<unknown>, ended: Promise<unknown>): void {
  running.add(stop);
  void ended.then(() => running.delete(stop));
}

/** Stops the services that a test file has left running. */
export async function stopLeftRunning(): Promise<void> {
  await Promise.all([...running].map((stop) => stop()));
}
