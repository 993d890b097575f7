import { createCompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import type { Command } from 'commander';
import { createRecordAdmin } from '../audit/record-admin.ts';
import type { OutputOptions } from '../output.ts';
import { databaseConfig, runOnDatabase } from '../run-on-database.ts';
import {
  deleteCompany,
  resumeCompany,
  suspendCompany,
  type CompanyLifeDeps,
} from './company-life.ts';

interface DeleteOptions extends OutputOptions {
  confirm?: string;
}

/** Adds `suspend|resume|delete` to the group `company` (docs/companies.md). */
export function addCompanyLifeCommands(group: Command): void {
  group
    .command('suspend <companyId>')
    .description('refuse its API keys and hold its deliveries, within seconds')
    .option('--json', 'print JSON')
    .action((id: string, output: OutputOptions) => run(output, (deps) => suspendCompany(deps, id)));
  group
    .command('resume <companyId>')
    .description('take its API keys and make its deliveries again')
    .option('--json', 'print JSON')
    .action((id: string, output: OutputOptions) => run(output, (deps) => resumeCompany(deps, id)));
  group
    .command('delete <companyId>')
    .description('delete a company with everything that it has; this cannot be undone')
    .option('--confirm <companyId>', 'the same id again')
    .option('--json', 'print JSON')
    .action((id: string, { confirm, ...output }: DeleteOptions) =>
      run(output, (deps) => deleteCompany(deps, id, confirm)),
    );
}

function run(
  output: OutputOptions,
  work: (deps: CompanyLifeDeps) => Promise<object>,
): Promise<void> {
  return runOnDatabase(output, databaseConfig, (db) =>
    work({ life: createCompanyLife(db), record: createRecordAdmin(db) }),
  );
}
