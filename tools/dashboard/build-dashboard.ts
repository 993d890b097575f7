import { execFile } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const APP = join(ROOT, 'apps/dashboard');
const BUILT = join(APP, 'dist/index.html');
/** Also the lock file: another version of a package makes other files. */
const SOURCES = [
  'src/**/*',
  'public/**/*',
  'index.html',
  'vite.config.ts',
  '../../libs/client/src/rules.ts',
  '../../package-lock.json',
];
const TIMEOUT_MS = 180_000;

/** Builds the files that the gateway serves at /dashboard. Throws with the output of Vite when a source is wrong. */
export async function buildDashboard(): Promise<void> {
  const args = ['node_modules/vite/bin/vite.js', 'build', '--config', join(APP, 'vite.config.ts')];
  // A process of its own: Vite sets NODE_ENV, which the services that are started later would inherit.
  await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: TIMEOUT_MS });
}

/** Whether a source has changed since the last build, or there was none. */
export function isDashboardOutdated(): boolean {
  const builtAtMs = statSync(BUILT, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAtMs === undefined) return true;
  return globSync(SOURCES, { cwd: APP }).some(
    (path) => statSync(join(APP, path)).mtimeMs > builtAtMs,
  );
}
