import { availableParallelism } from 'node:os';
import { FORMAT, limitedTo, LINT, runCheck, TYPES, type Check } from './runner/check.ts';
import { findChanges } from './runner/changed-files.ts';
import { findTests } from './runner/find-tests.ts';
import { findRelatedTests, runJest } from './runner/jest.ts';
import { createReport } from './runner/report.ts';

/**
 * Everything that needs no stack, side by side: types of all files, and lint, format and unit tests of what has changed.
 * Without a change, or with `--all`, of all files.
 */
const report = createReport();
const changes = process.argv.includes('--all') ? null : findChanges();
if (changes) console.log(`Checks what ${changes.length} changed files concern; --all checks all.`);

async function runChecks(checks: readonly Check[]): Promise<void> {
  for (const check of checks) await report.run(() => runCheck(check));
}

async function runUnitTests(): Promise<void> {
  const { unit: all = [] } = findTests([]);
  const files = changes ? await findRelatedTests(changes) : all;
  if (files.length === 0) return;
  const atOnce = availableParallelism();
  const part = { name: 'unit tests', projects: ['unit'], files, atOnce } as const;
  await report.run(() => runJest(part));
}

const lint = changes ? limitedTo(LINT, changes, /\.(ts|tsx|js|mjs)$/) : LINT;
const format = changes ? limitedTo(FORMAT, changes) : FORMAT;
await Promise.all([
  runUnitTests(),
  runChecks([TYPES, ...[lint, format].filter((each) => each !== null)]),
]);
process.exitCode = report.close();
