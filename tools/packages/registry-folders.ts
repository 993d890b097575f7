import { join } from 'node:path';
import { ensurePrograms } from '../check-ops/programs/ensure-programs.ts';
import { runProgram } from '../check-ops/programs/run-program.ts';
import { cachedFolder } from '../local-stack/machine/cache.ts';

/* Packages that only some checks need. They are downloaded once per user and are in no package.json. */

const INSTALL_TIMEOUT_MS = 240_000;

/** Returns the folder of a package of npm. Its install scripts do not run. Throws when it cannot be downloaded. */
export async function npmPackage(name: string, version: string): Promise<string> {
  const cacheName = `npm-${name.replaceAll('/', '-')}-${version}`;
  const folder = await cachedFolder(cacheName, async (prefix) => {
    const quietly = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    await runProgram('npm', ['install', '--prefix', prefix, ...quietly, `${name}@${version}`], {
      cwd: prefix,
      timeoutMs: INSTALL_TIMEOUT_MS,
    });
  });
  return join(folder, 'node_modules', name);
}

/**
 * Returns the folder that PYTHONPATH needs for a package of PyPI. Throws when it cannot be downloaded. Packages may be
 * compiled for one version of Python, which the name of the folder has. A virtual environment would need python3-venv.
 */
export async function pypiFolder(name: string, version: string): Promise<string> {
  const programs = [
    { name: 'python3', aptPackage: 'python3' },
    { name: 'pip3', aptPackage: 'python3-pip' },
  ];
  await ensurePrograms(programs, console.log);
  const printTag = ['-c', 'import sys; print(sys.implementation.cache_tag)'];
  const tag = (await runProgram('python3', printTag)).trim();
  return cachedFolder(`pypi-${name}-${version}-${tag}`, async (target) => {
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile'];
    const args = [...pip, '--target', target, `${name}==${version}`];
    await runProgram('python3', args, { cwd: target, timeoutMs: INSTALL_TIMEOUT_MS });
  });
}
