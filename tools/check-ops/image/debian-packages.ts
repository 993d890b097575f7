import { createHash } from 'node:crypto';
import { globSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cachedFolder } from '../../local-stack/machine/cache.ts';
import type { NeededProgram } from '../programs/needed-programs.ts';
import { runProgram } from '../programs/run-program.ts';

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
