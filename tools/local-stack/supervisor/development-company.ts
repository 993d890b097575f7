import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Children, writeFileAtomically } from '../processes/children.ts';
import type { Addresses } from '../settings.ts';
import { runProgram } from './set-up-stores.ts';

export interface Credentials {
  baseUrl: string;
  companyId: string;
  apiKey: string;
}

interface StackLocation {
  stackDir: string;
  baseUrl: string;
}

/** Creates the development company unless it exists. Its key is stored in credentials.json only. */
export async function ensureCompany(
  { stackDir, baseUrl }: StackLocation,
  addresses: Addresses,
  children: Children,
): Promise<Credentials> {
  const path = join(stackDir, 'credentials.json');
  const stored = readCredentials(path);
  const isKnown =
    stored !== undefined && (await companyExists(stored.companyId, addresses, children));
  const { companyId, apiKey } = isKnown
    ? stored
    : await createCompany('Development', addresses, children);
  const credentials = { baseUrl, companyId, apiKey };
  writeFileAtomically(path, `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
  return credentials;
}

function readCredentials(path: string): Credentials | undefined {
  try {
    const stored = JSON.parse(readFileSync(path, 'utf8')) as Partial<Credentials>;
    return stored.companyId && stored.apiKey ? (stored as Credentials) : undefined;
  } catch {
    return undefined;
  }
}

async function companyExists(
  companyId: string,
  addresses: Addresses,
  children: Children,
): Promise<boolean> {
  const found = (await runAdmin(['company', 'list'], addresses, children)) as {
    companyId: string;
  }[];
  return found.some((company) => company.companyId === companyId);
}

/** Creates a company with an API key. */
export async function createCompany(
  name: string,
  addresses: Addresses,
  children: Children,
): Promise<Omit<Credentials, 'baseUrl'>> {
  const created = await runAdmin(['company', 'create', name], addresses, children);
  const { companyId, apiKey } = created as { companyId: string; apiKey: string };
  return { companyId, apiKey };
}

/** Returns a link that opens the dashboard of the company once. */
export async function createSignInLink(
  { companyId, baseUrl }: Credentials,
  addresses: Addresses,
  children: Children,
): Promise<string> {
  const words = ['dashboard-link', companyId, '--url', process.env.PUBLIC_URL ?? baseUrl];
  const { url } = (await runAdmin(words, addresses, children)) as { url: string };
  return url;
}

/** Runs a command of the admin program with `--json`, and returns what it prints. */
export async function runAdmin(
  words: string[],
  addresses: Addresses,
  children: Children,
): Promise<unknown> {
  const entry = 'services/admin/src/main.ts';
  const args = [...words, '--json'];
  const output = await runProgram(`admin ${words[0] ?? ''}`, entry, args, addresses, children);
  return JSON.parse(output);
}
