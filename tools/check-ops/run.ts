import { OPS_CHECKS } from './checks.ts';
import { haveAllPassed, resultLine, summary } from './describe-results.ts';
import type { OpsCheck, OpsOutcome, OpsResult } from './ops-check.ts';
import { ensurePrograms, MissingProgramsError } from './programs/ensure-programs.ts';
import { selectChecks } from './select-checks.ts';

async function runCheck(check: OpsCheck): Promise<OpsResult> {
  console.log(`── ${check.name}: ${check.shows}`);
  const startedMs = performance.now();
  const outcome = await outcomeOf(check);
  const result = { check, outcome, durationMs: performance.now() - startedMs };
  console.log(`${resultLine(result)}\n`);
  return result;
}

async function outcomeOf({ programs, run }: OpsCheck): Promise<OpsOutcome> {
  try {
    await ensurePrograms(programs, progress);
    return { kind: 'passed', saw: await run(progress) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: error instanceof MissingProgramsError ? 'could-not-run' : 'failed', reason };
  }
}

function progress(line: string): void {
  console.log(`   ${line}`);
}

async function runChecks(args: string[]): Promise<boolean> {
  const selected = selectChecks(args, OPS_CHECKS);
  const results: OpsResult[] = [];
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // The check that runs cleans up after itself.
    process.on(signal, () => {
      interruption.abort();
    });
  }
  // One after the other: some start a stack, and all of them together need more memory than a laptop has.
  for (const check of selected) {
    if (!interruption.signal.aborted) results.push(await runCheck(check));
  }
  const notRun = OPS_CHECKS.filter((check) => results.every((result) => result.check !== check));
  console.log(summary(results, notRun));
  return haveAllPassed(results) && !interruption.signal.aborted;
}

try {
  const haveAll = await runChecks(process.argv.slice(2));
  // Not by itself: a check that failed may have left a timer or a connection.
  process.exit(haveAll ? 0 : 1);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
