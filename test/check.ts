import { availableParallelism } from 'node:os';
import { FORMAT, LINT_CHANGED, runCheck, TYPES } from './runner/check.ts';
import { findTests } from './runner/find-tests.ts';
import { runJest } from './runner/jest.ts';
import { createReport } from './runner/report.ts';

/** Everything that needs no stack: lint, format, types and unit tests, side by side. */
const report = createReport();
const { unit = [] } = findTests([]);

async function runChecks(): Promise<void> {
  for (const check of [LINT_CHANGED, TYPES, FORMAT]) await report.run(() => runCheck(check));
}

const unitTests = {
  name: 'unit tests',
  projects: ['unit'],
  files: unit,
  atOnce: availableParallelism(),
} as const;
await Promise.all([report.run(() => runJest(unitTests)), runChecks()]);
process.exitCode = report.close();
