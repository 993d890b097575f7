import { queryOptions } from '@tanstack/react-query';
import { SESSION_HEADER } from './client.ts';
import { DASHBOARD_PATH, PORTAL_COMPANY_ID } from './addresses.ts';
import { failureOf } from './failure.ts';

export type Scope = 'messages:write' | 'read' | 'webhooks:write' | 'keys:write' | 'admin';
export type Capability = 'view' | 'manage' | 'secrets' | 'resend';

export interface PortalTheme {
  name?: string;
  logoUrl?: string;
  primaryColor?: string;
  colorScheme?: 'light' | 'dark' | 'auto';
}

export interface Session {
  kind: 'company' | 'portal';
  company: { id: string; name: string };
  key: { id: string; scopes: readonly Scope[]; appId: string | null };
  expiresAt: string;
  portal: {
    app: { id: string; name: string };
    capabilities: readonly Capability[];
    theme: PortalTheme;
  } | null;
}

/** The company of a key is known; naming it too guards against the wrong key. */
export type Credentials = { apiKey: string; companyId?: string } | { link: string };

const ADDRESS = `${DASHBOARD_PATH}api/${PORTAL_COMPANY_ID === null ? '' : 'portal-'}session`;

/** Throws ApiFailure when the gateway refuses the credentials. */
export async function signIn(credentials: Credentials): Promise<Session> {
  return call('POST', credentials);
}

export async function signOut(): Promise<void> {
  await call('DELETE');
}

/** Single-use, so it is taken out of the address before anybody can copy it, and used once. */
let link = takeLinkFromAddress();

function takeLinkFromAddress(): string | null {
  const token = location.hash.slice(1);
  const isEntrance = PORTAL_COMPANY_ID !== null || location.pathname.endsWith('/sign-in');
  if (!isEntrance || token === '') return null;
  history.replaceState(null, '', location.pathname + location.search);
  return token;
}

/** The session of this browser; the data are null when it has none. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: Infinity,
  retry: false,
  queryFn: async (): Promise<Session | null> => {
    const given = link;
    link = null;
    return given === null ? findSession() : signIn({ link: given });
  },
});

async function findSession(): Promise<Session | null> {
  const response = await fetch(ADDRESS, { headers: SESSION_HEADER });
  return response.status === 401 ? null : readSession(response);
}

async function call(method: string, body?: Credentials): Promise<Session> {
  const json = { 'Content-Type': 'application/json' };
  return readSession(
    await fetch(ADDRESS, {
      method,
      headers: { ...SESSION_HEADER, ...(body && json) },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
}

async function readSession(response: Response): Promise<Session> {
  const body = (await response.json().catch(() => null)) as { data: Session } | null;
  if (!response.ok || body === null) throw failureOf(response.status, body);
  return body.data;
}
