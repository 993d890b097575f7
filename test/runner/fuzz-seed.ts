import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** Seeds of fast-check are whole numbers below this. */
const END = 2 ** 31;

/**
 * Returns the seed of everything that tests generate. It is that of the committed tree: each version is tried with values of
 * its own, and a run that fails fails again. `FUZZ_SEED` chooses another one. Without git it is random.
 */
export function fuzzSeed(): string {
  if (process.env.FUZZ_SEED !== undefined) return process.env.FUZZ_SEED;
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return String(Number.parseInt(tree.slice(0, 8), 16) % END);
  } catch {
    return String(randomInt(END));
  }
}
