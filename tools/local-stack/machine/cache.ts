import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A download still unfinished after this long was killed. */
const ABANDONED_AFTER_MS = 3_600_000;

/** Per user, so that a second clone downloads nothing. */
export function cacheDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env.POSTHORN_CACHE_DIR) return env.POSTHORN_CACHE_DIR;
  return join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'posthorn');
}

/**
 * A folder of the cache, filled by `fill` when it is not there. It gets its name only when complete: a killed download
 * never counts as done, and of two that run at once the first to finish wins.
 */
export async function cachedFolder(
  name: string,
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const complete = join(cacheDir(), name);
  if (existsSync(complete)) return complete;
  removeAbandoned();
  const unfinished = `${complete}.${process.pid}-${Date.now()}.part`;
  mkdirSync(unfinished, { recursive: true });
  try {
    await fill(unfinished);
    giveName(unfinished, complete);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return complete;
}

function giveName(unfinished: string, complete: string): void {
  try {
    renameSync(unfinished, complete);
  } catch (error) {
    if (!existsSync(complete)) throw error;
  }
}

function removeAbandoned(): void {
  if (!existsSync(cacheDir())) return;
  for (const name of readdirSync(cacheDir()).filter((entry) => entry.endsWith('.part'))) {
    const path = join(cacheDir(), name);
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (ageMs > ABANDONED_AFTER_MS) rmSync(path, { recursive: true, force: true });
  }
}
