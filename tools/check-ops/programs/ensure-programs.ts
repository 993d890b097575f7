import { thisMachine } from '../../local-stack/machine/install-programs.ts';
import { missingMessage, pathOf, type NeededProgram } from './needed-programs.ts';
import { runProgram } from './run-program.ts';
import { withoutStartingServices } from './without-starting-services.ts';

const APT_TIMEOUT_MS = 600_000;

export class MissingProgramsError extends Error {
  override readonly name = 'MissingProgramsError';
}

/** Installs the missing programs. Throws MissingProgramsError if they cannot be installed. */
export async function ensurePrograms(
  programs: readonly NeededProgram[],
  progress: (line: string) => void,
): Promise<void> {
  const missing = programs.filter((program) => pathOf(program) === undefined);
  if (missing.length === 0) return;
  const { isRoot, manager } = thisMachine();
  if (!isRoot || manager !== 'apt') throw new MissingProgramsError(missingMessage(missing));
  const packages = [...new Set(missing.map(({ aptPackage }) => aptPackage))];
  progress(`installing with apt-get: ${packages.join(' ')}`);
  await withoutStartingServices(() => aptInstall(packages));
  const stillMissing = missing.filter((program) => pathOf(program) === undefined);
  if (stillMissing.length > 0) throw new MissingProgramsError(missingMessage(stillMissing));
}

async function aptInstall(packages: readonly string[]): Promise<void> {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  // Another run may install at the same time.
  const apt = async (...args: string[]): Promise<string> =>
    runProgram('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=300', ...args], {
      env,
      timeoutMs: APT_TIMEOUT_MS,
    });
  try {
    await apt('update');
    await apt('install', '-y', '--no-install-recommends', ...packages);
  } catch (error) {
    throw new MissingProgramsError(error instanceof Error ? error.message : String(error));
  }
}
