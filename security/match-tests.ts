import type { TestedFile } from '../test/runner/jest.ts';
import type { Check } from './check.ts';
import type { CheckResult } from './result.ts';

/** Returns the files that belong to a check. */
export function filesOf({ tests }: Check, files: readonly string[]): string[] {
  return files.filter((file) => tests.some((part) => file.includes(part)));
}

/** Returns what the tests of a check came to. Throws when a part of a path matches no file. */
export function resultOf(check: Check, tested: readonly TestedFile[]): CheckResult {
  const { id, tried, holds, tests } = check;
  for (const part of tests) {
    if (!tested.some(({ path }) => path.includes(part))) throw new Error(`${id}: no test ${part}`);
  }
  const own = tested.filter(({ path }) => tests.some((part) => path.includes(part)));
  const named = (status: string): string[] =>
    own.flatMap((file) => file.tests.filter((each) => each.status === status).map((t) => t.name));
  const broken = own.filter(({ hasRun }) => !hasRun).map(({ path }) => `${path} did not run`);
  const failed = [...named('failed'), ...broken];
  return {
    id,
    tried,
    holds,
    passed: named('passed').length,
    failed,
    skipped: [...named('pending'), ...named('todo')],
  };
}
