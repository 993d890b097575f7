import type { Command } from 'commander';
import type { OutputOptions } from '../output.ts';
import { addCompanyLifeCommands } from './company-life-commands.ts';
import { createCompany, listCompanies } from './companies.ts';
import { addExportCommand } from './export-command.ts';
import { runOnCompanies } from './run-on-companies.ts';

/** Adds `company create|list|suspend|resume|delete|export`. */
export function addCompanyCommands(program: Command): void {
  const group = program.command('company').description('Companies');
  group
    .command('create <name>')
    .description('create a company and its first API key, which is shown only here')
    .option('--json', 'print JSON')
    .action((name: string, output: OutputOptions) =>
      runOnCompanies(output, (deps) => createCompany(deps, name)),
    );
  group
    .command('list')
    .description('list the companies, oldest first')
    .option('--json', 'print JSON')
    .action((output: OutputOptions) => runOnCompanies(output, listCompanies));
  addCompanyLifeCommands(group);
  addExportCommand(group);
}
