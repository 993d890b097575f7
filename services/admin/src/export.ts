import {
  exportCompany,
  type ExportedThing,
} from '@posthorn/platform/mongo/companies/company-export.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { createVault, type Vault } from '@posthorn/platform/security/vault.ts';
import type { Command } from 'commander';
import { createWriteStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createRecordAdmin, databaseConfig, withDatabase } from './command.ts';
import { type OutputOptions, printResult } from './output.ts';
import { ofCompany } from './companies.ts';

interface ExportOptions extends OutputOptions {
  out?: string;
  withSecrets?: boolean;
}

const secretsConfig = databaseConfig.extend(settings.encryption);

/** Adds `export` to the group `company` (docs/companies.md). */
export function addExportCommand(group: Command): void {
  group
    .command('export <companyId>')
    .description('write everything of a company, one JSON object on each line')
    .option('--out <file>', 'a file to create; the standard output when left out')
    .option('--with-secrets', 'with the secrets of webhooks; needs ENCRYPTION_KEYS')
    .option('--json', 'with --out, print the counts as JSON')
    .action(runExport);
}

async function runExport(companyId: string, options: ExportOptions): Promise<void> {
  const write = (db: Database, vault: Vault | null): Promise<ExportCounts> => {
    const withSecrets = vault !== null;
    const things = exportCompany(db, companyId, vault);
    const action = { ...ofCompany('company.exported', companyId), fields: { withSecrets } };
    return createRecordAdmin(db)(action, () =>
      writeExport(
        { things, companyId, withSecrets, nowMs: systemClockMs },
        options.out === undefined ? process.stdout : createExportFile(options.out),
      ),
    );
  };
  const counts = options.withSecrets
    ? await withDatabase(secretsConfig, (db, { ENCRYPTION_KEYS }) =>
        write(db, createVault(ENCRYPTION_KEYS)),
      )
    : await withDatabase(databaseConfig, (db) => write(db, null));
  if (options.out !== undefined) printResult(options, { file: options.out, counts });
}

interface ExportDeps {
  /** Everything of the company, which has nothing when it does not exist. */
  things: AsyncIterable<ExportedThing>;
  companyId: string;
  withSecrets: boolean;
  nowMs: () => number;
}

/** The form of the lines. Raised when a reader of the version before would misread them. */
const VERSION = 1;

/** How many things of each type were written. */
type ExportCounts = Record<string, number>;

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
function createExportFile(path: string): Writable {
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
