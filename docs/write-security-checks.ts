import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AREAS } from '../security/areas.ts';
import { verdictOf, type WrittenReport } from '../security/result.ts';
import { WAYS_IN } from '../security/ways-in.ts';
import { table } from './table.ts';

const RESULTS = join(import.meta.dirname, '../security/results');

const INTRODUCTION = `# Security checks

\`\`\`sh
npm run security               # all checks; the exit code is 1 when one is not good
npm run security -- S5 R4      # some of them
npm run security -- --list     # which tests each check runs
\`\`\`

starts Kafka, MongoDB and Redis in a temporary folder and the services on them, tries what an attacker would try, prints the
table below, and leaves nothing behind. It needs the native stack ([local-stack.md](local-stack.md)). Endpoints and attackers are on
the loopback interface: no packet leaves the machine.

Each check is a set of tests of this repository, so that they run with every change too, and there is one place to read what is tried: the
test. S1 to S${AREAS.length} are areas; R1 to R${WAYS_IN.length} are single ways in, most of which were open once. Where a check needs DNS answers or a clock, the test gives
them to the code; all others talk to running processes. A check is good when its tests pass, and at least one ran.
What the webhooks of a company send to one host is added up (R7) with \`HOST_ATTEMPTS_PER_SECOND\` only, which is 1,500 by
default ([security.md](security.md#a-limit-on-attempts-to-one-host)).
[SECURITY.md](../SECURITY.md) says what is trusted; [security.md](security.md#the-stories-on-secured-stores) has the stories on secured stores.

`;

/** Returns the text of the page on the security checks, by the newest report. */
export function securityChecksText(): string {
  const newest = globSync('*.json', { cwd: RESULTS }).sort().at(-1) ?? '';
  const report = JSON.parse(readFileSync(join(RESULTS, newest), 'utf8')) as WrittenReport;
  return [INTRODUCTION, lastRun(report), resultTable(report), failures(report)].join('');
}

function lastRun({ startedAt, seconds, machine }: WrittenReport): string {
  const { cpu, cores, memoryGiB, system, node, kafka, commit } = machine;
  const when = `${startedAt.slice(0, 10)}, ${Math.round(seconds / 60)} minutes, commit ${commit}`;
  return `## The last run\n\n${when}: ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, Kafka ${kafka}.\n\n`;
}

function resultTable({ results }: WrittenReport): string {
  const rows = results.map((each) => {
    const { id, tried, holds, passed } = each;
    return [id, tried, holds, String(passed), verdictOf(each)];
  });
  return table([['Check', 'What was tried', 'What must hold', 'Tests', 'Result'], ...rows]);
}

function failures({ results }: WrittenReport): string {
  const lines = results.flatMap(({ id, failed }) => failed.map((name) => `- ${id}: ${name}\n`));
  return lines.length === 0 ? '' : `\nWhat failed:\n\n${lines.join('')}`;
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, 'security-checks.md'), securityChecksText());
}
