import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../machine/cache.ts';
import type { Children } from '../processes/children.ts';
import { lastLines } from '../processes/log-file.ts';
import { type Log, settlesWithin } from '../waiting.ts';

const VERSION = '7.0.15';
/** Without a first byte by then the server is out of reach; with one, a slow line gets its time. */
const FIRST_BYTE_TIMEOUT_MS = 10_000;
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** A machine without a way out stays one for a while: it must not pay for the attempt at every start. */
const RETRY_AFTER_MS = 24 * 3_600_000;

/** The official build of MongoDB for this machine, downloaded once per user; undefined where it is out of reach. */
export async function officialMongod(children: Children, log: Log): Promise<string | undefined> {
  const folder = join(cacheDir(), `mongod-${VERSION}`);
  const known = downloadedProgram(folder);
  if (known !== undefined) return known;
  if (failedLately(folder)) return undefined;
  mkdirSync(folder, { recursive: true });
  log(`Downloading MongoDB ${VERSION} (once per user)`);
  await download(folder, children);
  const program = downloadedProgram(folder);
  if (program === undefined) noteFailure(folder, log);
  return program;
}

/** The library writes an archive under another name, unpacks it, and adds the checksum file last. */
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
    // A name that does not resolve will not resolve a second later.
    env: { ...process.env, MONGOMS_MAX_RETRIES: '1' },
    port: 0,
    logPath: join(folder, 'download.log'),
    stopTimeoutMs: 1_000,
  });
  const isQuick = await settlesWithin(child.exited, FIRST_BYTE_TIMEOUT_MS);
  if (!isQuick && hasFirstByte(folder)) await settlesWithin(child.exited, DOWNLOAD_TIMEOUT_MS);
  await child.stop();
}

function hasFirstByte(folder: string): boolean {
  const arriving = readdirSync(folder).filter((name) => name.endsWith('.downloading'));
  return arriving.some((name) => statSync(join(folder, name)).size > 0);
}

function failureMark(folder: string): string {
  return join(folder, 'out-of-reach');
}

function failedLately(folder: string): boolean {
  const failedAtMs = statSync(failureMark(folder), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - failedAtMs < RETRY_AFTER_MS;
}

function noteFailure(folder: string, log: Log): void {
  log(`The official build of MongoDB is out of reach: ${reason(join(folder, 'download.log'))}`);
  rmSync(join(folder, 'lockfile'), { force: true });
  writeFileSync(failureMark(folder), '');
}

function reason(logPath: string): string {
  const errorLine = /msg: '(.*)'/.exec(lastLines(logPath, 40))?.[1];
  return errorLine ?? `no answer within ${FIRST_BYTE_TIMEOUT_MS / 1_000} s`;
}
