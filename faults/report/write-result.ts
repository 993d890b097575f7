import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeHost, type Host } from '../../tools/local-stack/machine/describe-machine.ts';
import type { Result } from './result.ts';

/** The folder of the results. Git ignores it; the newest figures are rows of docs/reliability.md. */
export const RESULTS = join(import.meta.dirname, '../results');

type Named = Pick<Result, 'round' | 'startedAt'>;

/** What ROUND-TIME.json contains. */
export interface WrittenResult {
  machine: Host;
  result: Result;
}

export function writeResult(folder: string, result: Result): void {
  mkdirSync(folder, { recursive: true });
  const written: WrittenResult = { machine: describeHost(), result };
  writeFileSync(join(folder, `${nameOf(result)}.json`), `${JSON.stringify(written, null, 1)}\n`);
}

export function writeAll(path: string, results: readonly Result[]): void {
  writeFileSync(path, `${JSON.stringify(results, null, 1)}\n`);
}

/** The folder of the logs of a round that went wrong. */
export function logsPathOf(folder: string, result: Named): string {
  return join(folder, `${nameOf(result)}-logs`);
}

function nameOf({ round, startedAt }: Named): string {
  return `${round}-${startedAt.slice(0, 19).replaceAll(':', '')}`;
}
