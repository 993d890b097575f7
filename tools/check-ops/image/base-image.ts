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
import { cachedFolder } from '../../local-stack/machine/cache.ts';
import { runProgram } from '../programs/run-program.ts';
import { unpackedPackages } from './debian-packages.ts';

/** The base image of deploy/Dockerfile. */
export const BASE_IMAGE = 'node:24-bookworm-slim';
/** What that image has for the build; the services run without it. */
const NPM_VERSION = '11.19.1';
/** On a busy machine debootstrap takes three minutes. */
const TIMEOUT_MS = 900_000;
/** Of this machine: where downloads go through a proxy with a certificate of its own, the build must trust it too. */
export const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Returns an archive of a root file system that stands in for the base image where none can be pulled: Debian from its
 * packages, and this Node. It tests our Dockerfile, not the published image.
 */
export async function baseArchive(progress: (line: string) => void): Promise<string> {
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
