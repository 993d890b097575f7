import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { failOnExit } from '../processes/child.ts';
import type { Children } from '../processes/children.ts';
import { issuerUrlAt } from '../people/issuer-url.ts';
import { LOCAL_PEOPLE, LOCAL_ROLES, roleWords } from '../people/people.ts';
import type { Addresses, Settings } from '../settings.ts';
import { waitUntil } from '../waiting.ts';
import { type Credentials, runAdmin } from './development-company.ts';
import { NODE_FLAGS } from './services.ts';
import { baseUrlOf } from './welcome.ts';

const ENTRY = join(import.meta.dirname, '../people/main.ts');

/** The settings with which gateways let people sign in at the local issuer. */
export type PeopleEnv = Record<
  'PUBLIC_URL' | 'OIDC_ISSUER' | 'OIDC_CLIENT_ID' | 'OIDC_CLIENT_SECRET',
  string
>;

/** Starts an issuer with four people, and returns the settings that gateways need for it. */
export async function startPeople(settings: Settings, children: Children): Promise<PeopleEnv> {
  const { stackDir, issuerPort } = settings;
  const issuer = issuerUrlAt(issuerPort);
  const env = {
    PUBLIC_URL: process.env.PUBLIC_URL ?? baseUrlOf(settings),
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'posthorn',
    OIDC_CLIENT_SECRET: randomBytes(32).toString('base64url'),
  };
  const child = children.start({
    name: 'issuer',
    command: process.execPath,
    args: [...NODE_FLAGS, ENTRY],
    env: { ...process.env, ...env, ISSUER_PORT: String(issuerPort) },
    port: issuerPort,
    logPath: join(stackDir, 'logs', 'issuer.log'),
    stopTimeoutMs: 5_000,
  });
  const poll = { what: `${child.name} to answer (log: ${child.log})`, timeoutMs: 60_000 };
  await failOnExit(
    child,
    waitUntil(poll, () => answers(issuer)),
  );
  return env;
}

async function answers(issuer: string): Promise<boolean> {
  const url = `${issuer}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  return response?.ok === true;
}

/** Maps the groups of the four people to their roles in the development company. */
export async function grantRoles(
  { companyId }: Credentials,
  addresses: Addresses,
  children: Children,
): Promise<void> {
  const groups = LOCAL_ROLES.flatMap(({ group, role }) => ['--group', `${group}=${role}`]);
  await runAdmin(['company', 'groups', companyId, ...groups], addresses, children);
}

/** Returns the lines of `npm start -- --people` about signing in. */
export function peopleWelcome({ PUBLIC_URL }: PeopleEnv): string {
  const people = LOCAL_PEOPLE.map((person) => `${person.name} (${roleWords(person)})`);
  return [
    '',
    `People sign in at ${PUBLIC_URL}/dashboard/ as ${people.join(', ')}, without a password.`,
    'Groups and roles are on its page “People”; docs/people.md says how to use an issuer of your own.',
  ].join('\n');
}
