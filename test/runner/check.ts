import { runNode } from './program.ts';
import type { PartResult } from './report.ts';

export interface Check {
  name: string;
  /** A Node program that passes when it exits with 0. */
  command: readonly string[];
}

const CACHE = 'node_modules/.cache';
const ESLINT = 'node_modules/eslint/bin/eslint.js';

export const FORMAT: Check = {
  name: 'format',
  command: [
    ...['node_modules/prettier/bin/prettier.cjs', '--check', '.'],
    ...['--cache', '--cache-location', `${CACHE}/prettier/posthorn`],
  ],
};

export const LINT: Check = { name: 'lint', command: [ESLINT, '.', '--max-warnings', '0'] };

/** Types, and the rules of lint that know them. */
export const TYPES: Check = {
  name: 'types',
  command: ['node_modules/oxlint/bin/oxlint', '--type-aware', '--type-check', '--deny-warnings'],
};

/** Lints only files that have changed. */
export const LINT_CHANGED: Check = {
  name: 'lint',
  command: [
    ...[ESLINT, '.', '--cache', '--cache-strategy', 'content'],
    ...['--cache-location', `${CACHE}/eslint/`],
  ],
};

/** A thousand seeds. The unit tests run 50 of them, so that `npm run check` is short. */
export const SIMULATION: Check = {
  name: 'simulation',
  command: ['test/simulation/run.ts', '--seeds', '1000', '--from', '1'],
};

/** Runs a check and shows its output in one piece when it has ended. */
export async function runCheck({ name, command }: Check): Promise<PartResult> {
  let output = '';
  const code = await runNode({
    command,
    isInBackground: true,
    onOutput: (text) => {
      output += text;
    },
  });
  const isGood = code === 0;
  console.log(`\n── ${name}: ${isGood ? 'good' : 'FAILED'}\n${isGood ? '' : output}`);
  return { name, passed: isGood ? 1 : 0, failed: isGood ? 0 : 1, skipped: 0 };
}
