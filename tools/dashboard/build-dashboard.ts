import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../apps/dashboard');
const BUILT = join(ROOT, 'dist/index.html');
/** Also the lock file: another version of a package makes other files. */
const SOURCES = [
  'src/**/*',
  'public/**/*',
  'index.html',
  'vite.config.ts',
  '../../package-lock.json',
];

/** Builds the files that the gateway serves at /dashboard. Throws when a source is wrong. */
export async function buildDashboard(): Promise<void> {
  // Loaded late: most starts find a built dashboard.
  const { build } = await import('vite');
  await build({ configFile: join(ROOT, 'vite.config.ts') });
}

/** Whether a source has changed since the last build, or there was none. */
export function isDashboardOutdated(): boolean {
  const builtAtMs = statSync(BUILT, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAtMs === undefined) return true;
  return globSync(SOURCES, { cwd: ROOT }).some(
    (path) => statSync(join(ROOT, path)).mtimeMs > builtAtMs,
  );
}
