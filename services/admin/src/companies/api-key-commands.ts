import type { Command } from 'commander';
import type { OutputOptions } from '../output.ts';
import { createApiKey, listApiKeys, revokeApiKey } from './companies.ts';
import { parseKeyRights } from './key-options.ts';
import { runOnCompanies } from './run-on-companies.ts';

/** Adds `key create|list|revoke`. */
export function addApiKeyCommands(program: Command): void {
  const group = program.command('key').description('API keys');
  group
    .command('create <companyId>')
    .description('create another API key, which is shown only here')
    .option('--scopes <list>', 'what it may do, separated by commas; all when left out')
    .option('--app <appId>', 'the only app that it may be used for')
    .option('--expires <time>', 'when it stops working, an ISO time with a zone')
    .option('--json', 'print JSON')
    .action((companyId: string, options: OutputOptions) => {
      const rights = parseKeyRights(options);
      return runOnCompanies(options, (deps) => createApiKey(deps, companyId, rights));
    });
  group
    .command('list <companyId>')
    .description('list the API keys of a company, oldest first')
    .option('--json', 'print JSON')
    .action((companyId: string, output: OutputOptions) =>
      runOnCompanies(output, (deps) => listApiKeys(deps, companyId)),
    );
  group
    .command('revoke <keyId>')
    .description('revoke an API key; it stops working within two seconds')
    .option('--json', 'print JSON')
    .action((keyId: string, output: OutputOptions) =>
      runOnCompanies(output, (deps) => revokeApiKey(deps, keyId)),
    );
}
