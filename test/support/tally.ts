import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PART_TIMEOUT_MS = 2_400_000;
const ROOT = join(import.meta.dirname, '../..');
/** Native ESM in jest is experimental; kafkajs sets a negative timer once (tulios/kafkajs#1751). */
const QUIET = ['--disable-warning=ExperimentalWarning', '--disable-warning=TimeoutNegativeWarning'];

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
    await runNode(
      [
        ...['--experimental-vm-modules', 'node_modules/jest/bin/jest.js'],
        ...['--selectProjects', project, '--json', `--outputFile=${outputFile}`],
        // Stories start whole services; side by side they would fight for the two cores.
        ...(project === 'unit' ? [] : ['--runInBand']),
      ],
      env,
    );
    return JSON.parse(readFileSync(outputFile, 'utf8')) as JestReport;
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

/** Standard output of jest's JSON would repeat the report, so only standard error is shown. */
async function runNode(command: string[], env: Record<string, string>): Promise<number> {
  const isJest = command.some((part) => part.includes('jest.js'));
  const child = spawn(process.execPath, [...QUIET, ...command], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', isJest ? 'ignore' : 'inherit', 'inherit'],
    // A test that never lets go of the process must end as a failure, not as a run without end.
    timeout: PART_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
