import { parseConfig } from '@posthorn/platform/service/config.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { createAccountStore } from '@posthorn/platform/mongo/accounts/accounts.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { countByKey, resealWebhooks } from '@posthorn/platform/mongo/webhooks/webhooks-reseal.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { createVault, type Vault } from '@posthorn/platform/vault/vault.ts';
import { Command } from 'commander';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { print, type Output } from './output.ts';
import { createApiKey, createCompany, type CompanyDeps } from './companies.ts';
import { addDeadLetterCommands } from './dead-letters/letter-commands.ts';

const accountConfig = z.object(settings.mongodb);
const secretsConfig = z.object({ ...settings.mongodb, ...settings.encryption });

interface SecretsDeps {
  db: mongo.Db;
  vault: Vault;
}

/** Runs one command on the database and prints its result, as JSON with `--json`. */
async function run<Schema extends typeof accountConfig>(
  output: Output,
  schema: Schema,
  work: (db: mongo.Db, config: z.infer<Schema>) => Promise<object>,
): Promise<void> {
  const config = parseConfig<Schema>('admin', schema, process.env);
  const mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin');
  try {
    print(output, await work(mongo.db, config));
  } finally {
    await mongo.close();
  }
}

function onAccounts(output: Output, work: (deps: CompanyDeps) => Promise<object>): Promise<void> {
  return run(output, accountConfig, (db) =>
    work({ accounts: createAccountStore(db), newId: systemIds, nowMs: systemClockMs }),
  );
}

function onSecrets(output: Output, work: (deps: SecretsDeps) => Promise<object>): Promise<void> {
  return run(output, secretsConfig, (db, { ENCRYPTION_KEYS }) =>
    work({ db, vault: createVault(ENCRYPTION_KEYS) }),
  );
}

async function newCompany(deps: CompanyDeps, name: string): Promise<object> {
  if (name.length < 1 || name.length > 100) throw new Error('A name has 1 to 100 characters.');
  return createCompany(deps, name);
}

async function listCompanies({ accounts }: CompanyDeps): Promise<object> {
  const companies = await accounts.listCompanies();
  return companies.map(({ _id, name, createdAt }) => ({ companyId: _id, name, createdAt }));
}

async function requireCompany({ accounts }: CompanyDeps, companyId: string): Promise<void> {
  if (!(await accounts.hasCompany(companyId))) throw new Error(`No company ${companyId}.`);
}

async function newKey(deps: CompanyDeps, companyId: string): Promise<object> {
  await requireCompany(deps, companyId);
  return createApiKey(deps, companyId, 'made by admin');
}

async function listKeys(deps: CompanyDeps, companyId: string): Promise<object> {
  await requireCompany(deps, companyId);
  const keys = await deps.accounts.listKeys(companyId);
  return keys.map(({ _id, name, prefix, createdAt }) => ({ keyId: _id, name, prefix, createdAt }));
}

async function revoke({ accounts }: CompanyDeps, keyId: string): Promise<object> {
  if (!(await accounts.removeKey(keyId))) throw new Error(`No API key ${keyId}.`);
  return { revoked: keyId };
}

/** Webhooks that stay behind make the exit code 1, so that a script does not remove their key. */
async function rotate({ db, vault }: SecretsDeps): Promise<object> {
  const result = await resealWebhooks(db, vault, ({ message }) => {
    process.stderr.write(`${message}\n`);
  });
  if (result.remaining > 0) process.exitCode = 1;
  return result;
}

async function status({ db, vault }: SecretsDeps): Promise<object> {
  return { currentKeyId: vault.currentKeyId, webhooksByKeyId: await countByKey(db) };
}

function everyCommand(): string[] {
  return program.commands.flatMap((group) =>
    group.commands.map((command) => {
      const args = command.registeredArguments.map((argument) =>
        argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
      );
      const line = ['  ', group.name(), ' ', command.name(), ' ', ...args].join('');
      return `${line.padEnd(32)} ${command.description()}`;
    }),
  );
}

const program = new Command('admin').description('Administration of a Posthorn installation');
const company = program.command('company').description('Companies');
const key = program.command('key').description('API keys');
const secrets = program.command('secrets').description('Stored webhook secrets (docs/secrets.md)');
company
  .command('create <name>')
  .description('make a company with a first API key, shown only here')
  .option('--json', 'print JSON')
  .action((name: string, output: Output) => onAccounts(output, (deps) => newCompany(deps, name)));
company
  .command('list')
  .description('list the companies, oldest first')
  .option('--json', 'print JSON')
  .action((output: Output) => onAccounts(output, listCompanies));
company
  .command('exists <companyId>')
  .description('tell whether there is such a company')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) =>
    onAccounts(output, async ({ accounts }) => ({ exists: await accounts.hasCompany(id) })),
  );
key
  .command('create <companyId>')
  .description('make a further API key, shown only here')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) => onAccounts(output, (deps) => newKey(deps, id)));
key
  .command('list <companyId>')
  .description('list the API keys of a company, oldest first')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) => onAccounts(output, (deps) => listKeys(deps, id)));
key
  .command('revoke <keyId>')
  .description('make an API key invalid within two seconds')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) => onAccounts(output, (deps) => revoke(deps, id)));
secrets
  .command('rotate')
  .description('seal every webhook with the first key of ENCRYPTION_KEYS; may be interrupted')
  .option('--json', 'print JSON')
  .action((output: Output) => onSecrets(output, rotate));
secrets
  .command('status')
  .description('count the webhooks that each key has sealed')
  .option('--json', 'print JSON')
  .action((output: Output) => onSecrets(output, status));
addDeadLetterCommands(program);

program.addHelpText('after', () => `\nEvery command:\n${everyCommand().join('\n')}`);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
