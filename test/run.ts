import { availableParallelism } from 'node:os';
import {
  ensurePrograms,
  MissingProgramsError,
} from '../tools/check-ops/programs/ensure-programs.ts';
import { buildDashboard, isDashboardOutdated } from '../tools/dashboard/build-dashboard.ts';
import { type Report, createReport } from './runner/report.ts';
import { startShared, type SharedName, sharedBy } from './support/process/shared-posthorn.ts';
import { startAll } from './support/process/posthorn.ts';
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
import { readSelection, selectTests, type Selection, type TestFiles } from './runner/find-tests.ts';
import { runJest, type JestPart } from './runner/jest.ts';
import { withSetup } from './runner/serve-setup.ts';
import { withStack } from './runner/with-stack.ts';
import { fillCompileCache } from './support/process/service-process.ts';

const NEEDS_BROWSER = 'test/e2e/dashboard/';
const CHROMIUM = { name: 'chromium', aptPackage: 'chromium' };

/**
 * Returns the end-to-end tests that can run here, with what they need in place. Without a browser, those of the
 * dashboard cannot: a person is told so, and in CI the run fails.
 */
async function usableTests(files: readonly string[], report: Report): Promise<string[]> {
  const others = files.filter((file) => !file.startsWith(NEEDS_BROWSER));
  if (others.length === files.length) return [...files];
  try {
    await ensurePrograms([CHROMIUM], (line) => {
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

/** Starts the Posthorns that test files share, and stops them after the work. */
async function withSharedPosthorns(
  names: readonly SharedName[],
  work: (env: Record<string, string>) => Promise<void>,
): Promise<void> {
  const started = await startAll(names.map(startShared));
  const killAll = (): void => {
    for (const { kill } of started) kill();
  };
  process.once('exit', killAll);
  try {
    await work(Object.assign({}, ...started.map(({ env }) => env)) as Record<string, string>);
  } finally {
    process.removeListener('exit', killAll);
    await Promise.all(started.map(({ stop }) => stop()));
  }
}

/** Each file on the stack has services of its own: with one more at once, a slow machine answers some requests with 503. */
const CORES = availableParallelism();

async function run(report: Report, selection: Selection): Promise<void> {
  // Wrong settings are reported at once, not after the parts that need no stack.
  readSettings(process.env);
  const tests = selectTests(selection);
  const withoutStack = runWithoutStack(report, selection, tests);
  try {
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

async function runOnStack(report: Report, selection: Selection, found: TestFiles): Promise<void> {
  const { integration = [], faults = [] } = found;
  const e2e = await usableTests(found.e2e ?? [], report);
  if (integration.length + e2e.length + faults.length === 0) return;
  const tests = { ...found, e2e };
  const compiled = fillCompileCache(['gateway', 'dispatcher', 'retry']);
  await withStack(async (env) => {
    await compiled;
    Object.assign(process.env, env);
    await withSetup(async (setup) => {
      Object.assign(process.env, setup);
      const faultsEnded = runFaults(report, selection, faults);
      try {
        await runOnSharedStack(report, selection, tests);
      } finally {
        await faultsEnded;
      }
    });
  }, selection.isSecured);
}

/** Fault rounds have a stack of their own and wait for half of their time. */
async function runFaults(
  report: Report,
  { testName }: Selection,
  files: readonly string[],
): Promise<void> {
  const part = { name: 'fault rounds', projects: ['faults'], testName } as const;
  await runFiles(report, { ...part, files, atOnce: 1 });
}

async function runOnSharedStack(
  report: Report,
  { testName }: Selection,
  { integration = [], e2e = [] }: TestFiles,
): Promise<void> {
  const [sharing = [], others = []] = [true, false].map((isSharing) =>
    e2e.filter((file) => sharedBy([file]).length > 0 === isSharing),
  );
  // The shared Posthorns end before the others start: three services cost a sixth of a core without any work.
  await withSharedPosthorns(sharedBy(sharing), (env) =>
    runFiles(report, {
      testName,
      atOnce: CORES,
      name: 'integration and API tests',
      projects: ['integration', 'e2e'],
      files: [...integration, ...sharing],
      env,
    }),
  );
  await runFiles(report, {
    testName,
    atOnce: CORES,
    name: 'end-to-end tests',
    projects: ['e2e'],
    files: others,
  });
}

async function runFiles(report: Report, part: JestPart): Promise<void> {
  if (part.files.length > 0) await report.run(() => runJest(part));
}

const report = createReport();
try {
  await run(report, readSelection(process.argv.slice(2)));
} catch (error) {
  report.fail(error instanceof Error ? error.message : String(error));
} finally {
  process.exitCode = report.close();
}
