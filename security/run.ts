import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from '../docs/table.ts';
import { describeHost } from '../tools/local-stack/machine/describe-machine.ts';
import { messageOf } from '../tools/local-stack/stack-error.ts';
import { CHECKS } from './checks.ts';
import { HELP, listOf, readCommand, type Command } from './command-line.ts';
import { isGood, verdictOf, type CheckResult, type WrittenReport } from './result.ts';
import { runChecks } from './run-checks.ts';

const RESULTS = join(import.meta.dirname, 'results');

function readArguments(): Command {
  try {
    return readCommand(process.argv.slice(2), CHECKS);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
    return process.exit(1);
  }
}

function print(results: readonly CheckResult[]): void {
  const rows = results.map((each) => [each.id, each.tried, String(each.passed), verdictOf(each)]);
  console.log(`\n${table([['Check', 'What was tried', 'Tests', 'Result'], ...rows])}`);
  for (const { id, failed } of results) {
    for (const name of failed) console.log(`${id} FAILED: ${name}`);
  }
}

async function run({ checks, jsonPath, isWhole }: Command & { kind: 'run' }): Promise<number> {
  // Otherwise the attacks would go to stores that the user has configured.
  Object.assign(process.env, {
    STACK: 'native',
    KAFKA_BROKERS: '',
    MONGODB_URL: '',
    REDIS_URL: '',
  });
  const startedMs = Date.now();
  const results = await runChecks(checks);
  print(results);
  const report: WrittenReport = {
    startedAt: new Date(startedMs).toISOString(),
    seconds: Math.round((Date.now() - startedMs) / 1_000),
    machine: describeHost(),
    results,
  };
  const text = `${JSON.stringify(report, null, 1)}\n`;
  if (jsonPath !== undefined) writeFileSync(jsonPath, text);
  if (isWhole) {
    mkdirSync(RESULTS, { recursive: true });
    const name = report.startedAt.slice(0, 19).replaceAll(':', '');
    writeFileSync(join(RESULTS, `security-${name}.json`), text);
  }
  return results.every(isGood) ? 0 : 1;
}

const command = readArguments();
switch (command.kind) {
  case 'help':
    console.log(HELP);
    break;
  case 'list':
    console.log(listOf(CHECKS));
    break;
  case 'run':
    try {
      process.exitCode = await run(command);
    } catch (error) {
      console.error(messageOf(error));
      process.exitCode = 1;
    }
}
