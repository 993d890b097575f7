import { exportCompany } from '@posthorn/platform/mongo/companies/company-export.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import { createVault, type Vault } from '@posthorn/platform/vault/vault.ts';
import type { Command } from 'commander';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createRecordAdmin } from '../audit/record-admin.ts';
import { printResult, type OutputOptions } from '../output.ts';
import { databaseConfig, withDatabase } from '../run-on-database.ts';
import { ofCompany } from './company-life.ts';
import { createExportFile, writeExport, type ExportCounts } from './export-company.ts';

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
