import { parseArgs } from 'node:util';
import type { OpsCheck, OpsOutcome, OpsResult } from './ops-check.ts';
import { CONTAINER_IMAGE } from './image/container-image.ts';
import { ARGOCD_EXAMPLE } from './kubernetes/argocd-example.ts';
import { CHART_LINT } from './kubernetes/chart-lint.ts';
import { CHART_OPENINGS } from './kubernetes/chart-openings.ts';
import { HELM_CHART } from './kubernetes/helm-chart.ts';
import { OBJECT_SCHEMAS } from './kubernetes/object-schemas.ts';
import { POD_SECURITY } from './kubernetes/pod-security.ts';
import { SCALING_RULES, ALERTS, PROMETHEUS_CONFIGURATION } from './promtool.ts';
import { MONITORING } from './monitoring/monitoring.ts';
import { WORKFLOWS } from './workflows.ts';
import { ensurePrograms, MissingProgramsError } from './programs/ensure-programs.ts';

/** Every operations check, in the order in which they run. */
export const OPS_CHECKS: readonly OpsCheck[] = [
  PROMETHEUS_CONFIGURATION,
  ALERTS,
  SCALING_RULES,
  HELM_CHART,
  CHART_OPENINGS,
  OBJECT_SCHEMAS,
  POD_SECURITY,
  ARGOCD_EXAMPLE,
  WORKFLOWS,
  CHART_LINT,
  MONITORING,
  CONTAINER_IMAGE,
];

/** Reads `npm run check:ops -- [--quick] [name …]`. Throws on an unknown option or name. */
export function selectChecks(args: string[], all: readonly OpsCheck[]): OpsCheck[] {
  const options = { quick: { type: 'boolean', default: false } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const known = all.map(({ name }) => name);
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(`There is no check ${unknown.join(', ')}. Known: ${known.join(', ')}`);
  }
  return all.filter(
    ({ name, isQuick }) =>
      (positionals.length === 0 || positionals.includes(name)) && (isQuick || !values.quick),
  );
}

/** The line of a check that has ended. */
export function resultLine({ check, outcome, durationMs }: OpsResult): string {
  const seconds = (durationMs / 1_000).toFixed(1);
  return `── ${check.name}: ${ending(outcome)} (ran ${seconds} s)`;
}

function ending(outcome: OpsOutcome): string {
  switch (outcome.kind) {
    case 'passed':
      return `good, ${outcome.saw}`;
    case 'failed':
      return `FAILED\n${outcome.reason}`;
    case 'could-not-run':
      return `COULD NOT RUN\n${outcome.reason}`;
  }
}

/** The closing lines: how many of how many ran, and the checks that did not run. */
export function summary(results: readonly OpsResult[], notRun: readonly OpsCheck[]): string {
  const count = (kind: OpsOutcome['kind']): number =>
    results.filter(({ outcome }) => outcome.kind === kind).length;
  const lines = [
    `${results.length} of ${results.length + notRun.length} operations checks: ` +
      `${count('passed')} good, ${count('failed')} failed, ${count('could-not-run')} could not run`,
  ];
  for (const { name, shows } of notRun) {
    lines.push(`NOT CHECKED: ${shows} \`npm run check:ops -- ${name}\` checks it.`);
  }
  return lines.join('\n');
}

/** False as well when there is nothing to show. */
export function haveAllPassed(results: readonly OpsResult[]): boolean {
  return results.length > 0 && results.every(({ outcome }) => outcome.kind === 'passed');
}

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

if (import.meta.main) {
  try {
    const haveAll = await runChecks(process.argv.slice(2));
    // Not by itself: a check that failed may have left a timer or a connection.
    process.exit(haveAll ? 0 : 1);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
