import { existsSync, mkdirSync, openSync, readFileSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';

/** Opens a new log file. Keeps the previous one as NAME.log.1, because it is often needed after a restart. */
export function openLogFile(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if (existsSync(path)) renameSync(path, `${path}.1`);
  return openSync(path, 'a');
}

export function lastLines(path: string, count = 15): string {
  return lastLinesOf(existsSync(path) ? readFileSync(path, 'utf8') : '', count);
}

export function lastLinesOf(text: string, count = 15): string {
  const lines = text.trimEnd().split('\n').slice(-count);
  return lines.map((line) => `  ${line}`).join('\n');
}
