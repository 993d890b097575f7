import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { withStack } from '../../../test/runner/with-stack.ts';
import { freePorts } from '../../local-stack/machine/ports.ts';
import { waitUntil } from '../../local-stack/waiting.ts';
import type { OpsCheck } from '../ops-check.ts';
import { ROOT, runProgram } from '../programs/run-program.ts';
import {
  DEBIAN_TOOLS,
  unpackedPackages,
  withDockerEngine,
  type DockerEngine,
} from './docker-engine.ts';
import { cachedFolder } from '../../local-stack/machine/cache.ts';

const IMAGE = 'posthorn:check';
/** As in k8s/base, with a user id such as OpenShift assigns. */
const RESTRICTED = [
  '--network=host',
  '--user=1000680000:0',
  '--read-only',
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges',
];
const SERVICES = ['gateway', 'dispatcher', 'retry'] as const;
const HEALTH_TIMEOUT_MS = 120_000;

type Docker = DockerEngine['docker'];

export const CONTAINER_IMAGE: OpsCheck = {
  name: 'container-image',
  shows: 'The Dockerfile builds an image whose services start, get healthy and stop without root.',
  programs: [
    ...DEBIAN_TOOLS,
    { name: 'wget', aptPackage: 'wget' },
    { name: 'unshare', aptPackage: 'util-linux' },
  ],
  isQuick: false,
  run: async (progress) => {
    const archive = await baseArchive(progress);
    return withDockerEngine(progress, async ({ docker }) => {
      await build(docker, archive, progress);
      const packages = await requireContent(docker);
      await requireRefusal(docker);
      await withStack(async (stores) => runOn(stores, docker, progress), false);
      return `${packages} packages, no npm; ${SERVICES.length} services healthy and stopped as any user`;
    });
  },
};

async function build(
  docker: Docker,
  archive: string,
  progress: (line: string) => void,
): Promise<void> {
  progress('building the image');
  const trust = `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`;
  await docker('import', '--change', trust, archive, BASE_IMAGE);
  const revision = (await runProgram('git', ['rev-parse', 'HEAD'])).trim();
  const args = ['--build-arg', `REVISION=${revision}`, '--network=host', '-t', IMAGE];
  await docker('build', '-f', 'deploy/Dockerfile', ...args, ROOT);
  const label = '{{index .Config.Labels "org.opencontainers.image.revision"}}';
  const labelled = (await docker('image', 'inspect', '--format', label, IMAGE)).trim();
  if (labelled !== revision)
    throw new Error(`The image says revision ${labelled}, not ${revision}`);
}

/** Returns how many packages the SBOM in the image lists. Throws when a package manager is left in it. */
async function requireContent(docker: Docker): Promise<number> {
  const run = async (...command: string[]): Promise<string> =>
    docker('run', '--rm', ...RESTRICTED, IMAGE, ...command);
  const managers = ['npm', 'npx', 'corepack', 'yarn'];
  const search = `for each in ${managers.join(' ')}; do command -v $each; done; true`;
  const found = (await run('sh', '-c', search)).trim();
  if (found !== '') throw new Error(`The image has ${found}`);
  const sbom = JSON.parse(await run('cat', 'sbom.cdx.json')) as { components: { name: string }[] };
  const names = sbom.components.map(({ name }) => name);
  const missing = ['kafkajs', 'mongoose', 'undici'].filter((name) => !names.includes(name));
  if (missing.length > 0) throw new Error(`The SBOM does not list ${missing.join(', ')}`);
  return names.length;
}

/** A start without settings must end, with all that is missing. */
async function requireRefusal(docker: Docker): Promise<void> {
  const started = docker('run', '--rm', ...RESTRICTED, IMAGE);
  const message = await started.then(
    () => 'it started',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  const expected = ['exit code 1', 'KAFKA_BROKERS: is required', 'MONGODB_URL: is required'];
  const missing = expected.filter((text) => !message.includes(text));
  if (missing.length > 0) throw new Error(`A start without settings: ${message}`);
}

/** Sets up the stores with the image, then runs the three services of it until they are healthy. */
async function runOn(
  stores: Record<string, string>,
  docker: Docker,
  progress: (line: string) => void,
): Promise<void> {
  const [api = 0, ...opsPorts] = await freePorts(1 + SERVICES.length);
  const settings = {
    ...stores,
    ENCRYPTION_KEYS: newEncryptionKey(),
    ALLOW_PLAINTEXT_STORES: 'true',
    TOPIC_REPLICATION: '1',
    PORT: String(api),
    HOST: '127.0.0.1',
    OPS_HOST: '127.0.0.1',
  };
  for (const step of ['create-topics', 'create-indexes']) {
    progress(step);
    const command = ['setup', step];
    await docker('run', '--rm', ...RESTRICTED, ...environment(settings), IMAGE, ...command);
  }
  for (const [index, service] of SERVICES.entries()) {
    const env = environment({ ...settings, OPS_PORT: String(opsPorts[index]) });
    const name = ['--detach', '--name', service, '--health-interval=1s'];
    // The retry service as the chart starts it.
    const command = service === 'retry' ? ['node', 'services/retry/src/main.ts'] : [service];
    await docker('run', ...name, ...RESTRICTED, ...env, IMAGE, ...command);
  }
  for (const service of SERVICES) await requireHealthy(docker, service);
  progress('all healthy');
  await docker('exec', 'gateway', 'posthorn', 'admin', 'company', 'create', 'Check');
  for (const service of SERVICES) await requireCleanStop(docker, service);
}

async function requireHealthy(docker: Docker, service: string): Promise<void> {
  const poll = { what: `${service} to be healthy`, timeoutMs: HEALTH_TIMEOUT_MS, intervalMs: 500 };
  await waitUntil(poll, async () => {
    const state = await docker(
      'inspect',
      '-f',
      '{{.State.Status}} {{.State.Health.Status}}',
      service,
    );
    if (state.startsWith('exited')) throw new Error(await docker('logs', service));
    return state.trim() === 'running healthy';
  });
}

async function requireCleanStop(docker: Docker, service: string): Promise<void> {
  await docker('stop', '--time', '45', service);
  const code = (await docker('inspect', '-f', '{{.State.ExitCode}}', service)).trim();
  if (code !== '0') throw new Error(`${service} exits ${code}: ${await docker('logs', service)}`);
}

function environment(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
}

/** The base image of deploy/Dockerfile. */
const BASE_IMAGE = 'node:24-bookworm-slim';
/** The base image has npm for the build; the services run without it. */
const NPM_VERSION = '11.19.1';
/** On a busy machine debootstrap takes three minutes. */
const TIMEOUT_MS = 900_000;
/** Of this machine: where downloads go through a proxy with a certificate of its own, the build must trust it too. */
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Returns an archive of a root file system that stands in for the base image where none can be pulled: Debian from its
 * packages, and this Node. It tests our Dockerfile, not the published image.
 */
async function baseArchive(progress: (line: string) => void): Promise<string> {
  const debootstrap = await unpackedPackages(['debootstrap'], progress);
  const name = `base-bookworm-node-${process.versions.node}-npm-${NPM_VERSION}`;
  const folder = await cachedFolder(name, async (unfinished) => {
    progress('making a base image with debootstrap (once per user; minutes)');
    const scratch = mkdtempSync(join(tmpdir(), 'posthorn-base-'));
    try {
      const root = join(scratch, 'root');
      await bootstrap(debootstrap, root);
      await addNode(root, scratch);
      const archive = join(unfinished, 'base.tar.gz');
      const pack = ['-C', root, '-I', 'gzip -1', '-cf', archive, '.'];
      await runProgram('tar', pack, { timeoutMs: TIMEOUT_MS });
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  });
  return join(folder, 'base.tar.gz');
}

async function bootstrap(unpacked: string, root: string): Promise<void> {
  const program = join(unpacked, 'usr/sbin/debootstrap');
  const args = ['--variant=minbase', '--include=ca-certificates', 'bookworm', root];
  const env = { DEBOOTSTRAP_DIR: join(unpacked, 'usr/share/debootstrap') };
  await runProgram(program, args, { env, timeoutMs: TIMEOUT_MS });
  if (existsSync(CERTIFICATES)) copyFileSync(CERTIFICATES, join(root, CERTIFICATES));
}

async function addNode(root: string, scratch: string): Promise<void> {
  const [bin, modules] = [join(root, 'usr/local/bin'), join(root, 'usr/local/lib/node_modules')];
  mkdirSync(modules, { recursive: true });
  copyFileSync(process.execPath, join(bin, 'node'));
  await runProgram('npm', ['pack', '--silent', `npm@${NPM_VERSION}`], { cwd: scratch });
  await runProgram('tar', ['-xzf', join(scratch, `npm-${NPM_VERSION}.tgz`), '-C', scratch]);
  renameSync(join(scratch, 'package'), join(modules, 'npm'));
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(bin, 'npm'));
}
