import { startShared, type SharedName } from '../support/process/shared-posthorn.ts';
import { startAll } from '../support/process/start-all.ts';

/** Starts the Posthorns that test files share, and stops them after the work. */
export async function withSharedPosthorns(
  names: readonly SharedName[],
  work: (env: Record<string, string>) => Promise<void>,
): Promise<void> {
  const started = await startAll(names.map(startShared));
  const killAll = (): void => {
    for (const { kill } of started) kill();
  };
  process.once('exit', killAll);
  try {
    await work(Object.assign({}, ...started.map(({ env }) => env)) as Record<string, string>);
  } finally {
    process.removeListener('exit', killAll);
    await Promise.all(started.map(({ stop }) => stop()));
  }
}
