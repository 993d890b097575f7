import { createHash } from 'node:crypto';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedFolder } from '../../local-stack/machine/cache.ts';
import type { NeededProgram } from './ensure-programs.ts';
import { runProgram } from './run-program.ts';

/** Builds the programs below. Since 1.21 it fetches the version that a module asks for. */
export const GO: NeededProgram = { name: 'go', aptPackage: 'golang' };

/** On one busy core, the largest of them takes eight minutes. */
const BUILD_TIMEOUT_MS = 1_800_000;

type Progress = (line: string) => void;

/** A program that is built from its Go module, at a pinned version whose checksum Go verifies. */
export interface GoProgram {
  name: string;
  /** The package of the program, in the module. */
  package: string;
  version: string;
}

export const KUSTOMIZE: GoProgram = {
  name: 'kustomize',
  package: 'sigs.k8s.io/kustomize/kustomize/v5',
  version: 'v5.8.1',
};
export const HELM: GoProgram = {
  name: 'helm',
  package: 'helm.sh/helm/v3/cmd/helm',
  version: 'v3.22.0',
};
export const KUBECONFORM: GoProgram = {
  name: 'kubeconform',
  package: 'github.com/yannh/kubeconform/cmd/kubeconform',
  version: 'v0.8.0',
};
export const ACTIONLINT: GoProgram = {
  name: 'actionlint',
  package: 'github.com/rhysd/actionlint/cmd/actionlint',
  version: 'v1.7.12',
};

export const KUBE_SCORE: GoProgram = {
  name: 'kube-score',
  package: 'github.com/zegl/kube-score/cmd/kube-score',
  version: 'v1.20.0',
};

/** Returns the path of the program. Builds it once per user, in the cache folder. */
export async function builtProgram(
  { name, package: path, version }: GoProgram,
  progress: Progress,
): Promise<string> {
  const folder = await cachedFolder(`${name}-${version}`, async (unfinished) => {
    progress(`building ${name} ${version} (once per user; a minute or more)`);
    await inScratchFolder(async (cwd) => {
      writeFileSync(join(cwd, 'go.mod'), 'module posthorn/build\n');
      await go(['get', `${path}@${version}`], cwd);
      await go(['build', '-o', join(unfinished, name), path], cwd);
    });
  });
  return join(folder, name);
}

/**
 * Returns the path of a program whose source is a folder of this repository. Builds it once for each state of the
 * source.
 */
export async function builtFromSource(
  name: string,
  source: string,
  progress: Progress,
): Promise<string> {
  const files = globSync('*', { cwd: source }).sort();
  const hash = createHash('sha256');
  for (const file of files) hash.update(file).update(readFileSync(join(source, file)));
  const fingerprint = hash.digest('hex').slice(0, 12);
  const folder = await cachedFolder(`${name}-${fingerprint}`, async (unfinished) => {
    progress(`building ${name} (once per user)`);
    await inScratchFolder(async (cwd) => {
      cpSync(source, cwd, { recursive: true });
      await go(['build', '-o', join(unfinished, name), '.'], cwd);
    });
  });
  return join(folder, name);
}

/** Downloads a module, whose checksum Go verifies, and returns its folder. */
export async function downloadedModule(path: string, version: string): Promise<string> {
  return inScratchFolder(async (cwd) => {
    writeFileSync(join(cwd, 'go.mod'), 'module posthorn/download\n');
    const answer = await go(['mod', 'download', '-json', `${path}@${version}`], cwd);
    return (JSON.parse(answer) as { Dir: string }).Dir;
  });
}

async function go(args: readonly string[], cwd: string): Promise<string> {
  return runProgram('go', args, { cwd, timeoutMs: BUILD_TIMEOUT_MS });
}

async function inScratchFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-go-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
