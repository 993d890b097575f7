import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { killGroup, ROOT, runNode } from './program.ts';
import type { FileCost, PartResult } from './report.ts';

const REPORT = 'report.json';
/** From the report of a part, when every test has ended, to the end of its process. */
const EXIT_WITHIN_MS = 30_000;

const JEST = 'node_modules/jest/bin/jest.js';
/** Lines with every path that was given, and with the path of the report. */
const NOISE = /^(Ran all test suites|Test results written to).*\n/gm;

/** The projects of jest.config.js. */
const PROJECTS = ['unit', 'integration', 'e2e', 'faults'] as const;
export type Project = (typeof PROJECTS)[number];

export const isProject = (text: string): text is Project =>
  (PROJECTS as readonly string[]).includes(text);

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
  /** In milliseconds since 1970. */
  testResults: {
    name: string;
    startTime: number;
    endTime: number;
    /** Why the file could not run, else empty or what its tests say. */
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] | null }[];
  }[];
}

/** The environment variable with the file into which each test file writes its processor time. */
const COSTS = 'POSTHORN_TEST_COSTS';

/** Runs tests of some jest projects; a test file that could not run counts as one failed test. */
export async function runJest(part: JestPart): Promise<PartResult> {
  const { name, files } = part;
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-jest-'));
  const outputFile = join(folder, REPORT);
  const costsFile = join(folder, 'costs');
  writeFileSync(costsFile, '');
  try {
    const { code, processorSeconds } = await runNode({
      command: commandOf(part, outputFile),
      env: { ...part.env, [COSTS]: costsFile },
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
      processorSeconds,
      files: costsOf(report, readFileSync(costsFile, 'utf8')),
      failures: [...failuresOf(report), ...problems.map((problem) => `${name}: ${problem}`)],
    };
  } catch {
    const failure = `${name}: jest did not finish`;
    console.error(failure);
    return { name, passed: 0, failed: 1, skipped: 0, processorSeconds: 0, failures: [failure] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the unit tests that import one of these files, or that are among them. */
export async function findRelatedTests(files: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const sources = files.filter((file) => /\.(ts|mjs|js)$/.test(file));
  if (sources.length === 0) return [];
  await runNode({
    command: [
      ...[JEST, '--selectProjects', 'unit', '--listTests'],
      ...['--findRelatedTests', ...sources],
    ],
    onOutput: (text) => found.push(...text.split('\n').filter((line) => line.startsWith(ROOT))),
  });
  return found.map((path) => relative(ROOT, path));
}

function commandOf(part: JestPart, outputFile: string): string[] {
  const { projects, atOnce, files, testName } = part;
  return [
    JEST,
    ...['--selectProjects', ...projects],
    ...['--testPathPatterns', ...files.map(patternOf)],
    ...(testName === undefined ? [] : ['--testNamePattern', testName]),
    ...(atOnce === 1 ? ['--runInBand'] : ['--maxWorkers', String(atOnce)]),
    // Its standard output would be the report once more.
    ...['--json', `--outputFile=${outputFile}`],
  ];
}

/** `text` has a line for each test file: its path and its processor time in seconds, as `native-environment.mjs` writes it. */
function costsOf({ testResults }: JestReport, text: string): FileCost[] {
  const lines = text.split('\n').map((line) => line.split('\t'));
  const processorSeconds = new Map(lines.map(([path = '', seconds]) => [path, Number(seconds)]));
  return testResults.map(({ name, startTime, endTime }) => ({
    path: relative(ROOT, name),
    seconds: (endTime - startTime) / 1_000,
    processorSeconds: processorSeconds.get(name) ?? 0,
  }));
}

/** Returns a line for each failed test, and for each file that could not run. */
function failuresOf({ testResults }: JestReport): string[] {
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const path = relative(ROOT, name);
    if (assertionResults.length === 0 && message !== '') return [`${path}: ${reasonOf(message)}`];
    return assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => {
        const text = failureMessages?.[0] ?? '';
        const line = text.split(`${path}:`, 2)[1]?.match(/^\d+/)?.[0] ?? '?';
        return `${path}:${line}: ${fullName}: ${reasonOf(text)}`;
      });
  });
}

/** Returns the first line that says something; texts of jest have headings and the colours of a terminal. */
function reasonOf(text: string): string {
  const lines = stripVTControlCharacters(text).split('\n');
  return lines.find((line) => line.trim() !== '' && !line.includes('●'))?.trim() ?? '';
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
  const watcher = watch(folder, (_event, name) => {
    if (name !== REPORT) return;
    timer ??= setTimeout(killGroup, EXIT_WITHIN_MS, child);
  });
  child.once('exit', () => {
    clearTimeout(timer);
    watcher.close();
  });
}
