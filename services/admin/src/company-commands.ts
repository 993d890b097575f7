import { type Scope, SCOPES } from '@posthorn/domain/access.ts';
import type { GroupRole } from '@posthorn/domain/people.ts';
import type { Span } from '@posthorn/domain/stats.ts';
import {
  type AskedRights,
  type CompanyStore,
  createCompanyLife,
  createCompanyStore,
} from '@posthorn/platform/mongo/companies/companies.ts';
import {
  createLinkStore,
  type LinkStore,
  newLinkToken,
} from '@posthorn/platform/mongo/companies/links.ts';
import {
  createStatsQueries,
  USAGE_FIELDS,
} from '@posthorn/platform/mongo/messages/stats-queries.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Command } from 'commander';
import { z } from 'zod';
import {
  createRecordAdmin,
  databaseConfig,
  parseOptions,
  type RecordAdmin,
  runOnDatabase,
  timeOption,
  withDatabase,
} from './command.ts';
import {
  type CompanyLifeDeps,
  createApiKey,
  createCompany,
  deleteCompany,
  listApiKeys,
  listCompanies,
  resumeCompany,
  revokeApiKey,
  runOnCompanies,
  suspendCompany,
} from './companies.ts';
import { addExportCommand } from './export.ts';
import { formatCsv, formatTable, type OutputOptions } from './output.ts';
import { addGroupsCommand, parseGroup } from './people-commands.ts';

interface CreateOptions extends OutputOptions {
  group?: GroupRole[];
}

/** Adds `company create|list|groups|suspend|resume|delete|export`. */
export function addCompanyCommands(program: Command): void {
  const group = program.command('company').description('Companies');
  group
    .command('create <name>')
    .description('create a company and its first API key, which is shown only here')
    .option(
      '--group <group=role>',
      'who may sign in, such as platform=admin; may be repeated',
      parseGroup,
    )
    .option('--json', 'print JSON')
    .action((name: string, { group = [], ...output }: CreateOptions) =>
      runOnCompanies(output, (deps) => createCompany(deps, name, group)),
    );
  group
    .command('list')
    .description('list the companies, oldest first')
    .option('--json', 'print JSON')
    .action((output: OutputOptions) => runOnCompanies(output, listCompanies));
  addGroupsCommand(group);
  addCompanyLifeCommands(group);
  addExportCommand(group);
}

interface DeleteOptions extends OutputOptions {
  confirm?: string;
}

/** Adds `suspend|resume|delete` to the group `company` (docs/companies.md). */
function addCompanyLifeCommands(group: Command): void {
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
  return runOnDatabase(output, databaseConfig, (db, _config, { nowMs }) =>
    work({ life: createCompanyLife(db, nowMs), record: createRecordAdmin(db) }),
  );
}

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

const isScope = (text: string): text is Scope => SCOPES.some((scope) => scope === text);

const schema = z.object({
  scopes: z
    .string()
    .transform((text) => text.split(',').map((each) => each.trim()))
    .refine((texts) => texts.every(isScope), `must be one or more of ${SCOPES.join(',')}`)
    .transform((texts) => texts.filter(isScope))
    .optional(),
  app: z.string().optional(),
  expires: timeOption.optional(),
});

/** Reads the options of `key create`. Throws an error that names every invalid one. */
export function parseKeyRights(options: object): AskedRights {
  const { scopes, app, expires } = parseOptions(schema, options);
  return { scopes, appId: app, expiresAtMs: expires };
}

const linkConfig = databaseConfig.extend(settings.publicUrl);

/** Where the gateway of `npm start` listens. */
const LOCAL_URL = 'http://127.0.0.1:8080';

interface LinkOptions extends OutputOptions {
  url?: string;
}

/** Adds `dashboard-link`. */
export function addSignInLinkCommand(program: Command): void {
  program
    .command('dashboard-link <companyId>')
    .description('make a link that signs in to the dashboard once, within ten minutes')
    .option('--url <url>', `address of the gateway; PUBLIC_URL, or ${LOCAL_URL}, when left out`)
    .option('--json', 'print JSON')
    .action((companyId: string, options: LinkOptions) =>
      runOnDatabase(options, linkConfig, (db, { PUBLIC_URL = LOCAL_URL }, { nowMs }) =>
        createSignInLink(
          {
            companies: createCompanyStore(db),
            links: createLinkStore(db),
            record: createRecordAdmin(db),
            nowMs,
          },
          companyId,
          options.url ?? PUBLIC_URL,
        ),
      ),
    );
}

export interface SignInLinkDeps {
  companies: Pick<CompanyStore, 'hasCompany'>;
  links: Pick<LinkStore, 'insert'>;
  record: RecordAdmin;
  nowMs: () => number;
}

const LINK_MS = 10 * 60_000;

/**
 * Makes a link that opens the dashboard of a company once. The token is behind a `#`, which browsers send to
 * nobody, so that it is in no log of a proxy. Throws for an unknown company.
 */
export async function createSignInLink(
  { companies, links, record, nowMs }: SignInLinkDeps,
  companyId: string,
  publicUrl: string,
): Promise<{ url: string; expiresAt: Date }> {
  if (!(await companies.hasCompany(companyId))) {
    throw new Error(`There is no company ${companyId}.`);
  }
  const token = newLinkToken();
  const createdAtMs = nowMs();
  const expiresAtMs = createdAtMs + LINK_MS;
  const expiresAt = new Date(expiresAtMs);
  const action = 'dashboard_link.created' as const;
  const target = { kind: 'company' as const, id: companyId };
  await record({ companyId, action, target, fields: { expiresAt } }, () =>
    links.insert(token, { companyId, expiresAtMs, portal: null }, createdAtMs),
  );
  return { url: `${publicUrl}/dashboard/sign-in#${token}`, expiresAt };
}

/** Adds `usage` (docs/companies.md). */
export function addUsageCommand(program: Command): void {
  program
    .command('usage')
    .description('print what each company used in a month of UTC')
    .requiredOption('--month <month>', 'such as 2026-11')
    .option('--json', 'print JSON')
    .option('--csv', 'print CSV (RFC 4180)')
    .action(printUsage);
}

/** A month of UTC as `2026-11`, as the span from its beginning to its end. */
export const monthOption = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
  .transform((text): Span => {
    const [year = 0, month = 0] = text.split('-').map(Number);
    return { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) };
  });

export const usageOptions = z
  .object({
    month: monthOption,
    json: z.boolean().default(false),
    csv: z.boolean().default(false),
  })
  .refine(({ json, csv }) => !(json && csv), {
    path: ['csv'],
    message: 'cannot be used with --json',
  });

async function printUsage(given: object): Promise<void> {
  const { month, json, csv } = parseOptions(usageOptions, given);
  const usage = await withDatabase(databaseConfig, (db) => createStatsQueries(db).readUsage(month));
  process.stdout.write(
    csv ? formatCsv(USAGE_FIELDS, usage) : `${json ? JSON.stringify(usage) : formatTable(usage)}\n`,
  );
}
