import { availableParallelism } from 'node:os';
import {
  ensurePrograms,
  MissingProgramsError,
} from '../tools/check-ops/programs/ensure-programs.ts';
import { buildDashboard, isDashboardOutdated } from '../tools/dashboard/build-dashboard.ts';
import { type Report, createReport } from './runner/report.ts';
import { BROWSER } from '../tools/local-stack/machine/required-programs.ts';
import { readSettings } from '../tools/local-stack/settings.ts';
import {
  FORMAT,
  LINT,
  OPERATIONS,
  PACKAGES,
  PUBLISHED,
  runCheck,
  SIMULATION,
  TYPES,
} from './runner/check.ts';
import {
  readSelection,
  selectTests,
  type Selection,
  sharesPosthorn,
  type TestFiles,
} from './runner/find-tests.ts';
import { fuzzSeed } from './runner/fuzz-seed.ts';
import { runJest, type JestPart } from './runner/jest.ts';
import { withSetup } from './runner/serve-setup.ts';
import { withStack } from './runner/with-stack.ts';
import { COMPILE_CACHE, fillCompileCache, SERVICES } from './support/process/service-process.ts';

const NEEDS_BROWSER = ['test/e2e/dashboard/', 'test/e2e/people/'];

/**
 * Returns the end-to-end tests that can run here, with what they need in place. Without a browser, those of the
 * dashboard cannot: a person is told so, and in CI the run fails.
 */
async function usableTests(files: readonly string[], report: Report): Promise<string[]> {
  const others = files.filter((file) => !NEEDS_BROWSER.some((folder) => file.startsWith(folder)));
  if (others.length === files.length) return [...files];
  try {
    await ensurePrograms([{ name: BROWSER, aptPackage: BROWSER }], (line) => {
      console.log(line);
    });
  } catch (error) {
    if (!(error instanceof MissingProgramsError)) throw error;
    const reason = `NOT CHECKED: the dashboard in a browser. ${error.message}`;
    if (process.env.CI === undefined) console.error(reason);
    else report.fail(reason);
    return others;
  }
  if (isDashboardOutdated()) await buildDashboard();
  return [...files];
}

const CORES = availableParallelism();
/** Files wait for much of their time: for deliveries, pages and time-outs. */
const ON_STACK = CORES + 1;

async function run(report: Report, selection: Selection): Promise<void> {
  // Wrong settings are reported at once, not after the parts that need no stack.
  readSettings(process.env);
  const tests = selectTests(selection);
  const withoutStack = runWithoutStack(report, selection, tests);
  try {
    // Alone, but for what runs in the background: with the other stack beside it, two cores served 30 processes.
    await runFaults(report, selection, tests.faults ?? []);
    await runOnStack(report, selection, tests);
  } finally {
    await withoutStack;
  }
}

/** Runs in the background: where tests on the stack run beside it, in their pauses. */
async function runWithoutStack(
  report: Report,
  { isAll, testName }: Selection,
  { unit = [] }: TestFiles,
): Promise<void> {
  const checks = isAll ? [LINT, TYPES, FORMAT, PACKAGES, PUBLISHED, SIMULATION, OPERATIONS] : [];
  for (const check of checks) await report.run(() => runCheck(check));
  const part = { name: 'unit tests', projects: ['unit'], atOnce: CORES, testName } as const;
  await runFiles(report, { ...part, files: unit, isInBackground: true });
}

/**
 * Runs the tests on stores, each part on new ones: databases of other parts would be written at every checkpoint, their
 * topics be polled, and a MongoDB under wine allocates the more slowly the more it has freed (35 % of its processor time
 * after ten minutes).
 */
async function runOnStack(
  report: Report,
  { testName, isSecured }: Selection,
  { integration = [], e2e: found = [] }: TestFiles,
): Promise<void> {
  const e2e = await usableTests(found, report);
  const { sharing = [], others = [] } = Object.groupBy(e2e, (file) =>
    sharesPosthorn(file) ? 'sharing' : 'others',
  );
  const parts = [
    { name: 'integration tests', files: integration },
    { name: 'API tests', files: sharing },
    { name: 'end-to-end tests', files: others },
  ];
  for (const part of parts) {
    if (part.files.length === 0) continue;
    const compiled = fillCompileCache(SERVICES);
    const before = { ...process.env };
    await withStack(async (stack) => {
      await compiled;
      Object.assign(process.env, stack);
      await withSetup(async (setup) => {
        Object.assign(process.env, setup);
        const options = { projects: ['integration', 'e2e'], atOnce: ON_STACK, testName } as const;
        await runFiles(report, { ...part, ...options });
      });
    }, isSecured);
    process.env = before;
  }
}

/** Fault rounds have a stack of their own. */
async function runFaults(
  report: Report,
  { testName }: Selection,
  files: readonly string[],
): Promise<void> {
  const part = { name: 'fault rounds', projects: ['faults'], testName } as const;
  await runFiles(report, { ...part, files, atOnce: 1 });
}

async function runFiles(report: Report, part: JestPart): Promise<void> {
  if (part.files.length > 0) await report.run(() => runJest(part));
}

// Every program that a test starts takes half of the processor time to start with the compiled sources.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
process.env.FUZZ_SEED = fuzzSeed();
console.log(`FUZZ_SEED=${process.env.FUZZ_SEED}`);

const report = createReport();
try {
  await run(report, readSelection(process.argv.slice(2)));
} catch (error) {
  report.fail(error instanceof Error ? error.message : String(error));
} finally {
  process.exitCode = report.close();
}
