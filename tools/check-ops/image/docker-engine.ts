import { spawn, type ChildProcess } from 'node:child_process';
import {
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { createHash } from 'node:crypto';
import { waitForExit, lastLines, signalGroup } from '../../local-stack/processes/child.ts';
import { waitUntil } from '../../local-stack/waiting.ts';
import { MissingProgramsError, type NeededProgram } from '../programs/ensure-programs.ts';
import { runProgram } from '../programs/run-program.ts';
import { cachedFolder } from '../../local-stack/machine/cache.ts';

/** With the daemon's default of two file systems, dockerd takes what the kernel offers. */
const PACKAGES = ['docker.io', 'containerd', 'runc', 'iptables', 'libip6tc2', 'libnftnl11'];
const START_TIMEOUT_MS = 120_000;
const COMMAND_TIMEOUT_MS = 900_000;
/** Folders that dockerd and containerd make wherever their data are. */
const MADE_BY_DOCKER = ['/etc/docker', '/opt/containerd', '/run/containerd', '/run/docker'];

export interface DockerEngine {
  /** Runs a command of the client and returns its standard output. */
  docker: (...args: string[]) => Promise<string>;
}

/**
 * Calls `use` with a Docker engine of its own: its socket and data in a scratch folder, its processes and mounts in
 * namespaces that end with it, and no change to the network: builds and containers use the machine's.
 */
export async function withDockerEngine<T>(
  progress: (line: string) => void,
  use: (engine: DockerEngine) => Promise<T>,
): Promise<T> {
  if (process.getuid?.() !== 0) throw new MissingProgramsError('dockerd runs as root only.');
  const unpacked = await unpackedPackages(PACKAGES, progress);
  const existing = MADE_BY_DOCKER.filter((path) => existsSync(path));
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-docker-'));
  const daemon = startDaemon(unpacked, folder);
  const exited = waitForExit(daemon);
  const kill = (): void => {
    if (daemon.pid !== undefined) signalGroup(daemon.pid, 'SIGKILL');
  };
  process.once('exit', kill);
  try {
    const docker = clientOf(unpacked, folder);
    await waitForDaemon(docker, folder, exited);
    return await use({ docker });
  } finally {
    kill();
    await exited;
    process.removeListener('exit', kill);
    await removeFolder(folder);
    for (const path of MADE_BY_DOCKER) {
      if (!existing.includes(path)) rmSync(path, { recursive: true, force: true });
    }
  }
}

function startDaemon(unpacked: string, folder: string): ChildProcess {
  const configuration = join(folder, 'daemon.json');
  writeFileSync(configuration, JSON.stringify({ 'deprecated-key-path': join(folder, 'key.json') }));
  const log = openSync(join(folder, 'dockerd.log'), 'a');
  // The process in the new PID namespace is killed with its parent, and with it everything in the namespace.
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const options = [
    `--config-file=${configuration}`,
    `--host=${socketIn(folder)}`,
    `--data-root=${join(folder, 'data')}`,
    `--exec-root=${join(folder, 'exec')}`,
    `--pidfile=${join(folder, 'dockerd.pid')}`,
    `--cgroup-parent=/${basename(folder)}`,
    '--bridge=none',
    '--iptables=false',
    '--ip6tables=false',
  ];
  const daemon = spawn('unshare', [...namespaces, 'dockerd', ...options], {
    env: { ...process.env, PATH: pathWith(unpacked) },
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  return daemon;
}

function clientOf(unpacked: string, folder: string): DockerEngine['docker'] {
  const client = join(unpacked, 'usr/bin/docker');
  const config = join(folder, 'client');
  mkdirSync(config);
  // The builder without BuildKit: that one fetches its front end from a registry.
  const env = { DOCKER_CONFIG: config, DOCKER_BUILDKIT: '0' };
  return async (...args) =>
    runProgram(client, ['--host', socketIn(folder), ...args], {
      env,
      timeoutMs: COMMAND_TIMEOUT_MS,
    });
}

async function waitForDaemon(
  docker: DockerEngine['docker'],
  folder: string,
  exited: Promise<string>,
): Promise<void> {
  let exit: string | undefined;
  void exited.then((how) => (exit = how));
  try {
    await waitUntil({ what: 'dockerd', timeoutMs: START_TIMEOUT_MS, intervalMs: 250 }, async () => {
      if (exit !== undefined) throw new Error(`dockerd ended: ${exit}`);
      return docker('version').then(
        () => true,
        () => false,
      );
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const log = readFileSync(join(folder, 'dockerd.log'), 'utf8');
    throw new Error(`${reason}\n${lastLines(log)}`, { cause: error });
  }
}

/** The kernel frees the mounts of a dead namespace a moment later, and its control groups with the last process. */
async function removeFolder(folder: string): Promise<void> {
  await waitUntil({ what: `the end of what ran in ${folder}`, timeoutMs: 30_000 }, () => {
    try {
      rmSync(folder, { recursive: true, force: true });
      for (const group of globSync(`/sys/fs/cgroup/{,*/}${basename(folder)}`)) removeGroup(group);
      return Promise.resolve(true);
    } catch {
      return Promise.resolve(false);
    }
  });
}

/** A control group has files that cannot be deleted; it goes when it has no groups in it. */
function removeGroup(path: string): void {
  const entries = readdirSync(path, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) removeGroup(join(path, entry.name));
  rmdirSync(path);
}

function socketIn(folder: string): string {
  return `unix://${join(folder, 'docker.sock')}`;
}

function pathWith(unpacked: string): string {
  const folders = ['usr/sbin', 'usr/bin'].map((name) => join(unpacked, name));
  return [...folders, process.env.PATH ?? ''].join(delimiter);
}

const APT_GET: NeededProgram = { name: 'apt-get', aptPackage: 'apt' };
const DPKG: NeededProgram = { name: 'dpkg', aptPackage: 'dpkg' };
export const DEBIAN_TOOLS: readonly NeededProgram[] = [APT_GET, DPKG];

const DOWNLOAD_TIMEOUT_MS = 600_000;

/**
 * Returns a folder with the files of Debian packages, without installing them: an installed Docker would start with the
 * machine, and `npm start` would use it.
 */
export async function unpackedPackages(
  packages: readonly string[],
  progress: (line: string) => void,
): Promise<string> {
  const fingerprint = createHash('sha256').update(packages.join(' ')).digest('hex').slice(0, 12);
  return cachedFolder(`debian-${packages[0] ?? ''}-${fingerprint}`, async (folder) => {
    progress(`downloading ${packages.join(', ')} of Debian (once per user)`);
    const downloads = join(folder, 'downloads');
    mkdirSync(downloads);
    const options = { cwd: downloads, timeoutMs: DOWNLOAD_TIMEOUT_MS };
    await runProgram('apt-get', ['update', '-q'], options);
    await runProgram('apt-get', ['download', '-q', ...packages], options);
    for (const file of globSync('*.deb', { cwd: downloads })) {
      await runProgram('dpkg', ['-x', join(downloads, file), folder]);
    }
  });
}
