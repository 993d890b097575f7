import { parseConfig } from '@posthorn/platform/config.ts';
import { messageOf } from '@posthorn/platform/errors.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { settings } from '@posthorn/platform/settings.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/system.ts';
import { Command } from 'commander';
import { z } from 'zod';
import {
  companyExists,
  createApiKey,
  createCompany,
  revokeApiKey,
  type CompanyDeps,
} from './companies.ts';

const adminConfig = z.object(settings.mongodb);

interface Output {
  json?: boolean;
}

/** Runs one administration command and prints its result, as JSON with `--json`. */
async function run(output: Output, work: (deps: CompanyDeps) => Promise<object>): Promise<void> {
  const config = parseConfig('admin', adminConfig, process.env);
  const mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin');
  try {
    const result = await work({ db: mongo.db, newId: systemIds, nowMs: systemClockMs });
    process.stdout.write(`${output.json ? JSON.stringify(result) : inLines(result)}\n`);
  } finally {
    await mongo.close();
  }
}

function inLines(result: object): string {
  return Object.entries(result)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join('\n');
}

async function newKey(deps: CompanyDeps, companyId: string): Promise<object> {
  if (!(await companyExists(deps.db, companyId))) throw new Error(`No company ${companyId}.`);
  return createApiKey(deps, companyId, 'made by admin');
}

async function revoke({ db }: CompanyDeps, keyId: string): Promise<object> {
  if (!(await revokeApiKey(db, keyId))) throw new Error(`No API key ${keyId}.`);
  return { revoked: keyId };
}

const program = new Command('admin').description('Administration of a Posthorn installation');
const company = program.command('company').description('Companies');
const key = program.command('key').description('API keys');
company
  .command('create <name>')
  .description('make a company with a first API key, shown only here')
  .option('--json', 'print JSON')
  .action((name: string, output: Output) => run(output, (deps) => createCompany(deps, name)));
company
  .command('exists <companyId>')
  .description('tell whether there is such a company')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) =>
    run(output, async ({ db }) => ({ exists: await companyExists(db, id) })),
  );
key
  .command('create <companyId>')
  .description('make a further API key, shown only here')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) => run(output, (deps) => newKey(deps, id)));
key
  .command('revoke <keyId>')
  .description('make an API key invalid within two seconds')
  .option('--json', 'print JSON')
  .action((id: string, output: Output) => run(output, (deps) => revoke(deps, id)));

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
