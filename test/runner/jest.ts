import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killGroup, runNode } from './program.ts';
import type { PartResult } from './report.ts';

/** From the report of a part, when every test has ended, to the end of its process. */
const EXIT_WITHIN_MS = 30_000;

/**
 * Jest compiles the same sources anew for each test file, and V8's cache never answers for code that may
 * import: it only gets longer, and each look-up reads all of it. Without it, compiling takes 9 s of all unit
 * tests instead of 25. The workers of jest take over these flags.
 */
const NODE_FLAGS = ['--experimental-vm-modules', '--no-compilation-cache'];

/** Lines with every path that was given, and with the path of the report. */
const NOISE = /^(Ran all test suites|Test results written to).*\n/gm;

/** The projects of jest.config.js. */
export type Project = 'unit' | 'integration' | 'e2e' | 'faults';

export interface JestPart {
  name: string;
  projects: readonly Project[];
  /** How many test files run at once. */
  atOnce: number;
  /** Paths from the root of the repository. */
  files: readonly string[];
  /** Only tests whose full name matches this. */
  testName?: string | undefined;
  env?: Record<string, string>;
  isInBackground?: boolean;
}

interface JestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numRuntimeErrorTestSuites: number;
  numTotalTestSuites: number;
}

/** Runs tests of some jest projects; a test file that could not run counts as one failed test. */
export async function runJest(part: JestPart): Promise<PartResult> {
  const { name, files } = part;
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-jest-'));
  const outputFile = join(folder, 'report.json');
  try {
    const code = await runNode({
      command: commandOf(part, outputFile),
      env: part.env ?? {},
      isInBackground: part.isInBackground ?? false,
      onOutput: (text) => process.stderr.write(text.replaceAll(NOISE, '')),
      onStart: (child) => {
        endAfterReport(child, folder);
      },
    });
    const report = JSON.parse(readFileSync(outputFile, 'utf8')) as JestReport;
    const problems = problemsOf(report, files.length, code);
    for (const problem of problems) console.error(`${name}: ${problem}`);
    return {
      name,
      passed: report.numPassedTests,
      failed: report.numFailedTests + report.numRuntimeErrorTestSuites + problems.length,
      skipped: report.numPendingTests,
    };
  } catch {
    console.error(`${name}: jest did not finish`);
    return { name, passed: 0, failed: 1, skipped: 0 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function commandOf(part: JestPart, outputFile: string): string[] {
  const { projects, atOnce, files, testName } = part;
  return [
    ...NODE_FLAGS,
    'node_modules/jest/bin/jest.js',
    ...['--selectProjects', ...projects],
    ...['--testPathPatterns', ...files.map(patternOf)],
    ...(testName === undefined ? [] : ['--testNamePattern', testName]),
    ...(atOnce === 1 ? ['--runInBand'] : ['--maxWorkers', String(atOnce)]),
    // Its standard output would be the report once more.
    ...['--json', `--outputFile=${outputFile}`],
  ];
}

const patternOf = (file: string): string => `/${file.replaceAll('.', '\\.')}$`;

function problemsOf(report: JestReport, files: number, code: number | null): string[] {
  const problems: string[] = [];
  const { numTotalTestSuites: run } = report;
  if (run !== files) problems.push(`ran ${run} test files instead of ${files}`);
  const seconds = EXIT_WITHIN_MS / 1_000;
  if (code === null) problems.push(`did not end by itself within ${seconds} s of its last test`);
  return problems;
}

/** A failed test may leave a connection open, and jest would wait for it until the part's timeout. */
function endAfterReport(child: ChildProcess, folder: string): void {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, () => {
    timer ??= setTimeout(killGroup, EXIT_WITHIN_MS, child);
  });
  child.once('exit', () => {
    clearTimeout(timer);
    watcher.close();
  });
}
