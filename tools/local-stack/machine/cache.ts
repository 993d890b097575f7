import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A download that is unfinished after this time is assumed to be killed. */
const ABANDONED_AFTER_MS = 3_600_000;

/** Returns the cache folder. There is one per user, so that a second clone downloads nothing. */
export function cacheDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env.POSTHORN_CACHE_DIR) return env.POSTHORN_CACHE_DIR;
  return join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'posthorn');
}

/**
 * Returns a folder of the cache, and fills it first if it does not exist. It gets its name when it is complete, so that a
 * killed download never counts as complete. If two downloads run at the same time, the first one to finish is used.
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
    renameIfAbsent(unfinished, complete);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return complete;
}

function renameIfAbsent(unfinished: string, complete: string): void {
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
