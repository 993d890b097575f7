import type { Host } from '../tools/local-stack/machine/describe-machine.ts';

/** What came of one check. */
export interface CheckResult {
  id: string;
  tried: string;
  holds: string;
  passed: number;
  /** Full names of the tests. */
  failed: readonly string[];
  /** The machine lacks something, or the test says why it is left out. */
  skipped: readonly string[];
}

/** What security/results has. */
export interface WrittenReport {
  startedAt: string;
  seconds: number;
  machine: Host;
  results: readonly CheckResult[];
}

/** A check without a test that passed has shown nothing. */
export const isGood = ({ passed, failed }: CheckResult): boolean =>
  failed.length === 0 && passed > 0;

export function verdictOf(result: CheckResult): string {
  if (!isGood(result)) return `FAILED (${result.failed.length})`;
  return result.skipped.length === 0 ? 'good' : `good, ${result.skipped.length} not checked`;
}
