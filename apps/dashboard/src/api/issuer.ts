import { queryOptions, skipToken } from '@tanstack/react-query';
import { DASHBOARD_PATH } from './addresses.ts';
import { sessionHeaders } from './client.ts';
import { failureOf } from './failure.ts';
import { bodyOf } from './session.ts';

/** How one may sign in. */
export interface Offers {
  /** Where people sign in; null when only keys and links open the dashboard. */
  oidc: { issuer: string } | null;
  /** Whether an API key opens it too. */
  apiKey: boolean;
  /** Why the sign-in of just before began no session, with the groups that the issuer named; null for none. */
  refused: { code: string; groups: readonly string[] | null } | null;
}

const ONLY_KEYS: Offers = { oidc: null, apiKey: true, refused: null };

export const offersQuery = queryOptions({
  queryKey: ['session', 'offers'],
  staleTime: Infinity,
  queryFn: async (): Promise<Offers> => {
    const response = await fetch(`${DASHBOARD_PATH}api/sign-in`);
    // A gateway of an older version, during an upgrade.
    if (response.status === 404) return ONLY_KEYS;
    return read<Offers>(response);
  },
});

interface Attempt {
  /** The page to come back to, as `hereForIssuer` returns it. */
  to: string;
  companyId?: string;
  invitation?: string;
  /** Has the issuer ask who it is, also where it knows. */
  again?: boolean;
}

/** Leaves for the issuer, which leads back to the dashboard. Throws ApiFailure when no sign-in can begin. */
export async function goToIssuer(attempt: Attempt): Promise<void> {
  const { url } = await post<{ url: string }>('oidc', attempt);
  location.assign(url);
}

/** Returns the address of this page, as the gateway knows it: without the path of a proxy in front. */
export function hereForIssuer(): string {
  const { pathname, search } = location;
  const below = pathname.startsWith(DASHBOARD_PATH) ? pathname.slice(DASHBOARD_PATH.length) : '';
  return `/dashboard/${below}${search}`;
}

/** The way out of the session at the issuer, after that of the dashboard has ended. */
export interface SignedOut {
  endSessionUrl: string | null;
}

/** Ends the session of a person, or all that they have. */
export function leave(everywhere: boolean): Promise<SignedOut> {
  return post<SignedOut>('session/sign-out', everywhere ? { everywhere } : {});
}

/** Set after a person has signed out in this tab, and until they sign in. */
export const signedOutQuery = queryOptions<SignedOut | null>({
  queryKey: ['session', 'signed-out'],
  queryFn: skipToken,
  initialData: null,
  staleTime: Infinity,
});

async function post<Data>(path: string, body: object): Promise<Data> {
  const response = await fetch(`${DASHBOARD_PATH}api/${path}`, {
    method: 'POST',
    headers: { ...sessionHeaders(), 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return read<Data>(response);
}

async function read<Data>(response: Response): Promise<Data> {
  const body = await bodyOf(response);
  if (!response.ok || body === null) throw failureOf(response.status, body);
  return (body as { data: Data }).data;
}
