import { processorSeconds } from './processor-time.ts';

/** What one test file took. */
export interface FileCost {
  /** From the root of the repository. */
  path: string;
  seconds: number;
  /** Of its process and the programs that it has started. A shared Posthorn is not part of it. */
  processorSeconds: number;
}

/** The result of one part of a test run. */
export interface PartResult {
  name: string;
  passed: number;
  failed: number;
  skipped: number;
  processorSeconds: number;
  files?: readonly FileCost[];
  /** A line for each failed test: its file, its name and what went wrong. */
  failures?: readonly string[];
}

/** Counts passed and failed tests over all parts. */
export interface Report {
  /** Adds a part when it has ended. */
  run: (part: () => Promise<PartResult>) => Promise<void>;
  /** Counts something outside the parts that went wrong as one failure. */
  fail: (message: string) => void;
  /** Prints how long each part and the dearest files took, what failed, and the closing line; returns the exit code. */
  close: () => number;
}

export function createReport(): Report {
  const startedMs = performance.now();
  const lines: string[] = [];
  const files: FileCost[] = [];
  const failures: string[] = [];
  const sum = { passed: 0, failed: 0, skipped: 0 };
  return {
    async run(part) {
      const partStartedMs = performance.now();
      const result = await part();
      lines.push(partLine(result, performance.now() - partStartedMs));
      files.push(...(result.files ?? []));
      failures.push(...(result.failures ?? []));
      sum.passed += result.passed;
      sum.failed += result.failed;
      // Each says in the output what the machine lacks; that is not a failure.
      sum.skipped += result.skipped;
    },
    fail(message) {
      console.error(message);
      failures.push(message);
      sum.failed += 1;
    },
    close() {
      const { own, children } = processorSeconds();
      const all = duration(performance.now() - startedMs);
      lines.push(`${'all'.padEnd(NAME_WIDTH)} ${all} ${cpu(own + children)}`);
      console.log(`\n${dearestOf(files).join('\n')}\n\n${lines.join('\n')}`);
      if (failures.length > 0) console.log(`\nFailed:\n${failures.join('\n')}`);
      console.log(`\n${countsOf(sum)}`);
      return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
    },
  };
}

const NAME_WIDTH = 26;
const SHOWN_FILES = 10;

/** Returns a line for each of the files that took the longest. */
function dearestOf(files: readonly FileCost[]): string[] {
  const longest = files.toSorted((one, other) => other.seconds - one.seconds);
  return longest
    .slice(0, SHOWN_FILES)
    .map(
      ({ path, seconds, processorSeconds }) =>
        `${seconds.toFixed(0).padStart(5)} s ${cpu(processorSeconds)}   ${path}`,
    );
}

function partLine(result: PartResult, ms: number): string {
  const times = `${duration(ms)} ${cpu(result.processorSeconds)}`;
  return `${result.name.padEnd(NAME_WIDTH)} ${times}   ${countsOf(result)}`;
}

function cpu(seconds: number): string {
  return `${seconds.toFixed(0).padStart(5)} s CPU`;
}

function countsOf({
  passed,
  failed,
  skipped,
}: Pick<PartResult, 'passed' | 'failed' | 'skipped'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2)} s`.padStart(12);
}
