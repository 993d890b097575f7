import { createLogger, type Logger } from '@posthorn/platform/service/logger.ts';

export interface LogLines {
  logger: Logger;
  /** The entries so far, parsed. */
  lines: Record<string, unknown>[];
}

/** Returns a logger whose entries of level info and above a test can read. */
export function collectLogLines(): LogLines {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as never);
  return { logger: createLogger('test', 'info', { write }), lines };
}
