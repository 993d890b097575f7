import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../machine/cache.ts';
import type { Children } from '../processes/children.ts';
import { lastLines } from '../processes/log-file.ts';
import { type Log, settlesWithin } from '../waiting.ts';

const VERSION = '7.0.15';
/** If no byte arrives in this time, the server cannot be reached. After the first byte, a slow download may continue. */
const FIRST_BYTE_TIMEOUT_MS = 10_000;
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** A machine without internet access must not wait for a failing download at every start. */
const RETRY_AFTER_MS = 24 * 3_600_000;

/** Returns the official build of MongoDB, downloaded once per user; undefined if it cannot be downloaded. */
export async function ensureOfficialMongod(
  children: Children,
  log: Log,
): Promise<string | undefined> {
  const folder = join(cacheDir(), `mongod-${VERSION}`);
  const known = downloadedProgram(folder);
  if (known !== undefined) return known;
  if (failedRecently(folder)) return undefined;
  mkdirSync(folder, { recursive: true });
  log(`Downloading MongoDB ${VERSION} (once per user)`);
  await download(folder, children);
  const program = downloadedProgram(folder);
  if (program === undefined) recordFailure(folder, log);
  return program;
}

/** Returns a completely downloaded program: the library adds the checksum file after it has unpacked the archive. */
function downloadedProgram(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const checksum = readdirSync(folder).find((name) => /^mongod-.*\.md5$/.test(name));
  return checksum === undefined ? undefined : join(folder, checksum.replace(/\.md5$/, ''));
}

async function download(folder: string, children: Children): Promise<void> {
  const child = children.start({
    name: 'mongodb-download',
    isOneShot: true,
    command: process.execPath,
    args: [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, 'download-official.ts'),
      VERSION,
      folder,
    ],
    // A host name that does not resolve will not resolve a second later either.
    env: { ...process.env, MONGOMS_MAX_RETRIES: '1' },
    port: 0,
    logPath: join(folder, 'download.log'),
    stopTimeoutMs: 1_000,
  });
  const hasExited = await settlesWithin(child.exited, FIRST_BYTE_TIMEOUT_MS);
  if (!hasExited && hasFirstByte(folder)) await settlesWithin(child.exited, DOWNLOAD_TIMEOUT_MS);
  await child.stop();
}

function hasFirstByte(folder: string): boolean {
  const unfinished = readdirSync(folder).filter((name) => name.endsWith('.downloading'));
  return unfinished.some((name) => statSync(join(folder, name)).size > 0);
}

function failureMarkerPath(folder: string): string {
  return join(folder, 'out-of-reach');
}

function failedRecently(folder: string): boolean {
  const failedAtMs = statSync(failureMarkerPath(folder), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - failedAtMs < RETRY_AFTER_MS;
}

function recordFailure(folder: string, log: Log): void {
  log(
    `Cannot download the official build of MongoDB: ${failureReason(join(folder, 'download.log'))}`,
  );
  rmSync(join(folder, 'lockfile'), { force: true });
  writeFileSync(failureMarkerPath(folder), '');
}

function failureReason(logPath: string): string {
  const errorLine = /msg: '(.*)'/.exec(lastLines(logPath, 40))?.[1];
  return errorLine ?? `no response within ${FIRST_BYTE_TIMEOUT_MS / 1_000} s`;
}
