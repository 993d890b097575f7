import { createWriteStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ExportedThing } from '@posthorn/platform/mongo/companies/company-export.ts';

export interface ExportDeps {
  /** Everything of the company, which has nothing when it does not exist. */
  things: AsyncIterable<ExportedThing>;
  companyId: string;
  withSecrets: boolean;
  nowMs: () => number;
}

/** The form of the lines. Raised when a reader of the version before would misread them. */
const VERSION = 1;

/** How many things of each type were written. */
export type ExportCounts = Record<string, number>;

/**
 * Writes one JSON object on each line: a header, every thing of the company, and at the end how many of
 * each type there were. A file without that line is not complete. Throws for an unknown company.
 */
export async function writeExport(deps: ExportDeps, target: Writable): Promise<ExportCounts> {
  const counts: ExportCounts = {};
  const lines = Readable.from(linesOf(deps, counts));
  await pipeline(lines, target, { end: target !== process.stdout });
  return counts;
}

/** Creates the file, for its owner alone. Fails when it exists. */
export function createExportFile(path: string): Writable {
  return createWriteStream(path, { flags: 'wx', mode: 0o600 });
}

async function* linesOf(
  { things, companyId, withSecrets, nowMs }: ExportDeps,
  counts: ExportCounts,
): AsyncGenerator<string> {
  const exportedAt = new Date(nowMs()).toISOString();
  const format = 'posthorn-company-export';
  yield toLine({ type: 'header', format, version: VERSION, companyId, withSecrets, exportedAt });
  for await (const thing of things) {
    counts[thing.type] = (counts[thing.type] ?? 0) + 1;
    yield toLine(thing);
  }
  if (counts.company !== 1) throw new Error(`There is no company ${companyId}.`);
  yield toLine({ type: 'end', counts });
}

function toLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
