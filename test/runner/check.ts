import { runNode } from './program.ts';
import type { PartResult } from './report.ts';

export interface Check {
  name: string;
  /** A Node program that passes when it exits with 0. */
  command: readonly string[];
}

const CACHE = 'node_modules/.cache';
export const FORMAT: Check = {
  name: 'format',
  command: [
    ...['node_modules/prettier/bin/prettier.cjs', '--check', '--ignore-unknown', '.'],
    ...['--cache', '--cache-location', `${CACHE}/prettier/posthorn`],
  ],
};
/** Reads only files that have changed since its last run in this checkout. */
export const LINT: Check = {
  name: 'lint',
  command: [
    ...['node_modules/eslint/bin/eslint.js', '.', '--max-warnings', '0', '--no-warn-ignored'],
    ...['--cache', '--cache-strategy', 'content', '--cache-location', `${CACHE}/eslint/`],
  ],
};

/** Returns a check of these files alone, in place of `.`; null when it reads none of them. */
export function limitedTo(
  { name, command }: Check,
  files: readonly string[],
  readable = /./,
): Check | null {
  const read = files.filter((file) => readable.test(file));
  if (read.length === 0) return null;
  return { name, command: command.flatMap((each) => (each === '.' ? read : [each])) };
}

/** Types, and the rules of lint that know them. */
export const TYPES: Check = {
  name: 'types',
  command: ['node_modules/oxlint/bin/oxlint', '--type-aware', '--type-check', '--deny-warnings'],
};

/** 300 seeds. The unit tests run 50 of them, so that `npm run check` is short. */
export const SIMULATION: Check = {
  name: 'simulation',
  command: ['test/simulation/run.ts', '--seeds', '300', '--from', '1'],
};

/** Licences and advisories of the packages of production. */
export const PACKAGES: Check = { name: 'packages', command: ['tools/packages/check-packages.ts'] };

/** The packages that npm publishes, built and checked in this Node. `npm run packages -- check` has the other runtimes. */
export const PUBLISHED: Check = {
  name: 'published packages',
  command: ['tools/packages/run.ts', 'check', '--quick'],
};

/** Manifests, alerts and what else operators run, without the checks that take minutes. */
export const OPERATIONS: Check = {
  name: 'operations',
  command: ['tools/check-ops/run.ts', '--quick'],
};

/** Runs a check and shows its output in one piece when it has ended; of a good one, what it left out. */
export async function runCheck({ name, command }: Check): Promise<PartResult> {
  let output = '';
  const { code, processorSeconds } = await runNode({
    command,
    isInBackground: true,
    onOutput: (text) => {
      output += text;
    },
  });
  const isGood = code === 0;
  const shown = isGood ? notChecked(output) : output;
  console.log(`\n── ${name}: ${isGood ? 'good' : 'FAILED'}\n${shown}`);
  const counts = isGood ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
  return { name, ...counts, skipped: 0, processorSeconds, failures: isGood ? [] : [name] };
}

function notChecked(output: string): string {
  const lines = output.split('\n').filter((line) => line.startsWith('NOT CHECKED'));
  return lines.map((line) => `${line}\n`).join('');
}
