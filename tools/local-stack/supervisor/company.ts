import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Children } from '../processes/children.ts';
import { writeWhole } from '../processes/record.ts';
import type { Addresses } from '../settings.ts';
import { runProgram } from './set-up.ts';

export interface Credentials {
  baseUrl: string;
  companyId: string;
  apiKey: string;
}

interface Place {
  stackDir: string;
  baseUrl: string;
}

/** The development company: made once per database; this file is the only place that holds its key. */
export async function provideCompany(
  { stackDir, baseUrl }: Place,
  addresses: Addresses,
  children: Children,
): Promise<Credentials> {
  const path = join(stackDir, 'credentials.json');
  const kept = readCredentials(path);
  const isKnown = kept !== undefined && (await companyExists(kept.companyId, addresses, children));
  const { companyId, apiKey } = isKnown ? kept : await createCompany(addresses, children);
  const credentials = { baseUrl, companyId, apiKey };
  writeWhole(path, `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
  return credentials;
}

function readCredentials(path: string): Credentials | undefined {
  try {
    const kept = JSON.parse(readFileSync(path, 'utf8')) as Partial<Credentials>;
    return kept.companyId && kept.apiKey ? (kept as Credentials) : undefined;
  } catch {
    return undefined;
  }
}

async function companyExists(
  companyId: string,
  addresses: Addresses,
  children: Children,
): Promise<boolean> {
  const { exists } = await admin(['exists', companyId], addresses, children);
  return exists === true;
}

async function createCompany(
  addresses: Addresses,
  children: Children,
): Promise<Omit<Credentials, 'baseUrl'>> {
  const { companyId, apiKey } = await admin(['create', 'Development'], addresses, children);
  return { companyId: String(companyId), apiKey: String(apiKey) };
}

async function admin(
  words: string[],
  addresses: Addresses,
  children: Children,
): Promise<Record<string, unknown>> {
  const entry = 'services/admin/src/main.ts';
  const args = ['company', ...words, '--json'];
  const answer = await runProgram('The development company', entry, args, addresses, children);
  return JSON.parse(answer) as Record<string, unknown>;
}
