/** The result of one part of a test run. */
export interface PartResult {
  name: string;
  passed: number;
  failed: number;
  skipped: number;
}

/** Counts passed and failed tests over all parts. */
export interface Report {
  /** Adds a part when it has ended. */
  run: (part: () => Promise<PartResult>) => Promise<void>;
  /** Counts something outside the parts that went wrong as one failure. */
  fail: (message: string) => void;
  /** Prints how long each part took and the closing line; returns the exit code. */
  close: () => number;
}

export function createReport(): Report {
  const startedMs = performance.now();
  const lines: string[] = [];
  const sum = { passed: 0, failed: 0, skipped: 0 };
  return {
    async run(part) {
      const partStartedMs = performance.now();
      const result = await part();
      lines.push(partLine(result, performance.now() - partStartedMs));
      sum.passed += result.passed;
      sum.failed += result.failed;
      // Each says in the output what the machine lacks; that is not a failure.
      sum.skipped += result.skipped;
    },
    fail(message) {
      console.error(message);
      sum.failed += 1;
    },
    close() {
      lines.push(`${'all'.padEnd(NAME_WIDTH)} ${duration(performance.now() - startedMs)}`);
      console.log(`\n${lines.join('\n')}`);
      console.log(`\n${countsOf(sum)}`);
      return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
    },
  };
}

const NAME_WIDTH = 26;

function partLine(result: PartResult, ms: number): string {
  return `${result.name.padEnd(NAME_WIDTH)} ${duration(ms)}   ${countsOf(result)}`;
}

function countsOf({ passed, failed, skipped }: Omit<PartResult, 'name'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2)} s`.padStart(12);
}
