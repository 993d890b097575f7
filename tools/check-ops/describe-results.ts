import type { OpsCheck, OpsOutcome, OpsResult } from './ops-check.ts';

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

/** The closing lines: how many of how many ran, and what nobody has checked. */
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
