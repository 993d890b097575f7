import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PART_TIMEOUT_MS = 2_400_000;
/** From the report of a part, when every test has ended, to the end of its process. */
const LET_GO_MS = 30_000;
const ROOT = join(import.meta.dirname, '../..');
/** Native ESM in jest is experimental. */
const QUIET = ['--disable-warning=ExperimentalWarning'];

/** Runs the parts of a test run one after the other and counts what passed and failed. */
export interface Tally {
  /** A program of Node that passes when it exits 0; counts as one. */
  check: (name: string, command: string[]) => Promise<void>;
  /** One jest project; counts its tests, and a suite that could not run as one that failed. */
  jest: (project: string, env: Record<string, string>) => Promise<void>;
  /** Something outside the tests that went wrong; counts as one. */
  fail: (message: string) => void;
  /** Prints the closing line and answers the exit code. */
  report: () => number;
}

interface JestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numRuntimeErrorTestSuites: number;
}

export function createTally(): Tally {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  return {
    async check(name, command) {
      console.log(`\n── ${name}`);
      const isGood = (await runNode(command, {})) === 0;
      console.log(isGood ? `${name}: good` : `${name}: FAILED`);
      if (isGood) passed += 1;
      else failed += 1;
    },
    async jest(project, env) {
      console.log(`\n── ${project} tests`);
      const report = await runJest(project, env);
      passed += report.numPassedTests;
      failed += report.numFailedTests + report.numRuntimeErrorTestSuites;
      // Named in the output by the test itself; a part that the machine lacks is not a failure.
      skipped += report.numPendingTests;
    },
    fail(message) {
      console.error(message);
      failed += 1;
    },
    report() {
      const left = skipped > 0 ? `, ${skipped} skipped` : '';
      console.log(`\n${passed} passed, ${failed} failed${left}`);
      return failed === 0 && passed > 0 ? 0 : 1;
    },
  };
}

async function runJest(project: string, env: Record<string, string>): Promise<JestReport> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-jest-'));
  const outputFile = join(folder, 'report.json');
  try {
    const command = [
      ...['--experimental-vm-modules', 'node_modules/jest/bin/jest.js'],
      ...['--selectProjects', project, '--json', `--outputFile=${outputFile}`],
      // Stories start whole services; side by side they would fight for the two cores.
      ...(project === 'unit' ? [] : ['--runInBand']),
    ];
    const code = await runNode(command, env, (child) => {
      endAfterReport(child, folder);
    });
    const report = JSON.parse(readFileSync(outputFile, 'utf8')) as JestReport;
    if (code !== null) return report;
    console.error(
      `${project}: did not end by itself within ${LET_GO_MS / 1_000} s of its last test`,
    );
    return { ...report, numFailedTests: report.numFailedTests + 1 };
  } catch {
    console.error(`${project}: jest did not finish`);
    return {
      numPassedTests: 0,
      numFailedTests: 1,
      numPendingTests: 0,
      numRuntimeErrorTestSuites: 0,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A failed test may leave a connection open, and jest would wait for it until the part's timeout. */
function endAfterReport(child: ChildProcess, folder: string): void {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, () => {
    timer ??= setTimeout(() => child.kill('SIGKILL'), LET_GO_MS);
  });
  child.once('exit', () => {
    clearTimeout(timer);
    watcher.close();
  });
}

/**
 * Standard output of jest's JSON would repeat the report, so only standard error is shown. Answers
 * the exit code, null for a process that was ended.
 */
async function runNode(
  command: string[],
  env: Record<string, string>,
  started?: (child: ChildProcess) => void,
): Promise<number | null> {
  const child = spawn(process.execPath, [...QUIET, ...command], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', started ? 'ignore' : 'inherit', 'inherit'],
    // A test that never ends must be a failure, not a run without end.
    timeout: PART_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  started?.(child);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.removeListener('exit', end);
  return code;
}
