interface Stoppable {
  stop: () => Promise<unknown>;
}

/**
 * Waits for all to start. When one fails, stops the others and throws its error: a process that is left
 * keeps the one that started it from ending.
 */
export async function startAll<Started extends Stoppable>(
  starting: readonly Promise<Started>[],
): Promise<Started[]> {
  const results = await Promise.allSettled(starting);
  const failed = results.find((result) => result.status === 'rejected');
  const started = results.flatMap((result) =>
    result.status === 'fulfilled' ? [result.value] : [],
  );
  if (!failed) return started;
  await Promise.all(started.map((each) => each.stop()));
  throw failed.reason;
}
