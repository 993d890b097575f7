import { availableParallelism } from 'node:os';
import { findTests, type TestFiles } from '../test/runner/find-tests.ts';
import { runJest, type Project, type TestedFile } from '../test/runner/jest.ts';
import { withSetup } from '../test/runner/serve-setup.ts';
import { withSharedPosthorns } from '../test/runner/with-shared-posthorns.ts';
import { withStack } from '../test/runner/with-stack.ts';
import { fillCompileCache } from '../test/support/process/service-process.ts';
import { sharedBy } from '../test/support/process/shared-posthorn.ts';
import type { Check } from './check.ts';
import { filesOf, resultOf } from './match-tests.ts';
import type { CheckResult } from './result.ts';

const CORES = availableParallelism();

/** Runs the tests of all checks once, on a stack of its own; returns what each check came to. */
export async function runChecks(checks: readonly Check[]): Promise<CheckResult[]> {
  const files = filesByProject(checks);
  const tested: TestedFile[] = [];
  await run('without a stack', ['unit'], files.unit ?? [], tested);
  const { integration = [], e2e = [] } = files;
  if (integration.length + e2e.length > 0) await runOnStack([...integration, ...e2e], tested);
  return checks.map((check) => resultOf(check, tested));
}

function filesByProject(checks: readonly Check[]): TestFiles {
  const files = Object.entries(findTests([])) as [Project, string[]][];
  return Object.fromEntries(
    files.map(([project, all]) => [
      project,
      all.filter((file) => checks.some((check) => filesOf(check, [file]).length > 0)),
    ]),
  );
}

async function runOnStack(files: readonly string[], tested: TestedFile[]): Promise<void> {
  await fillCompileCache(['gateway', 'dispatcher', 'retry']);
  await withStack(async (addresses) => {
    Object.assign(process.env, addresses);
    await withSetup(async (setup) => {
      Object.assign(process.env, setup);
      await withSharedPosthorns(sharedBy(files), async (env) => {
        await run('against running services', ['integration', 'e2e'], files, tested, env);
      });
    });
  }, false);
}

async function run(
  name: string,
  projects: readonly Project[],
  files: readonly string[],
  tested: TestedFile[],
  env: Record<string, string> = {},
): Promise<void> {
  if (files.length === 0) return;
  const onTested = (all: readonly TestedFile[]): void => void tested.push(...all);
  await runJest({ name, projects, files, env, atOnce: CORES + 1, onTested });
}
