import { queryOptions, skipToken } from '@tanstack/react-query';
import { DASHBOARD_PATH, PORTAL_COMPANY_ID } from './addresses.ts';
import { arrival } from './arrival.ts';
import { type Schemas, sessionHeaders, showSession } from './client.ts';
import { ApiFailure, failureOf } from './failure.ts';

export type Scope = Schemas['ApiKey']['scopes'][number];
export type Capability = Schemas['CreatePortalLink']['capabilities'][number];

/** The rights of a person in a company (docs/people.md). */
export type Role = Schemas['Role'];

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
  /** Who signed in at the issuer; null with a key or a link. */
  person: { id: string; name: string | null; role: Role } | null;
  /** The companies that are open to this person, in the order in which they are offered; null with a key or a link. */
  companies: readonly { id: string; name: string; role: Role }[] | null;
}

/** The company of a key is known; naming it too guards against the wrong key. */
export type Credentials = { apiKey: string; companyId?: string } | { link: string };

/** Another company of the person who is signed in. */
interface Change {
  companyId: string;
}

const ADDRESS = `${DASHBOARD_PATH}api/${PORTAL_COMPANY_ID === null ? '' : 'portal-'}session`;

/** Throws ApiFailure when the gateway refuses the credentials. */
export async function signIn(credentials: Credentials): Promise<Session> {
  return call(credentials);
}

/** Goes on in another company of the same person. Throws ApiFailure when it is not open to them any more. */
export async function enterCompany(companyId: string): Promise<Session> {
  return call({ companyId });
}

export async function signOut(): Promise<void> {
  const response = await fetch(ADDRESS, { method: 'DELETE', headers: sessionHeaders() });
  if (!response.ok) throw failureOf(response.status, await bodyOf(response));
}

/** Browsers may refuse a frame's cookies without saying so. The link is used up all the same. */
const COOKIE_REFUSED = new ApiFailure(0, {
  code: 'cookie_refused',
  message:
    'Your browser kept no cookie for the portal, so the visit could not begin. Allow cookies for it, or open it in a tab of its own.',
});

/** What else may fail here ends no visit that has just begun: the calls of its pages tell it. */
async function assertCookieKept(begun: Session): Promise<void> {
  const found = await findSession().catch(() => begun);
  if (found === null) throw COOKIE_REFUSED;
}

/** Used once. */
let { link } = arrival;

/** The session of this browser; the data are null when it has none. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: Infinity,
  retry: false,
  queryFn: async (): Promise<Session | null> => {
    const given = link;
    link = null;
    if (given === null) return findSession();
    const session = await signIn({ link: given });
    if (PORTAL_COMPANY_ID !== null) await assertCookieKept(session);
    return session;
  },
});

/**
 * The session that this browser has although a sign-in link did not open; null for none. Nothing of it is shown until
 * somebody chooses to go on with it.
 */
export const heldSessionQuery = queryOptions({
  queryKey: ['session', 'held'],
  gcTime: 0,
  retry: false,
  queryFn: async (): Promise<Session | null> => {
    const held = await findSession().catch(() => null);
    showSession(null);
    return held;
  },
});

/** How the session before has ended. */
export interface SessionEnd {
  why: ApiFailure;
  wasOfPerson: boolean;
}

/** Null while there was no session, and after signing out. */
export const sessionEndQuery = queryOptions<SessionEnd | null>({
  queryKey: ['session', 'end'],
  queryFn: skipToken,
  initialData: null,
  staleTime: Infinity,
});

async function findSession(): Promise<Session | null> {
  const response = await fetch(ADDRESS, { headers: sessionHeaders() });
  const body = await bodyOf(response);
  // There is none; any other refusal says why.
  if (response.status === 401 && failureOf(401, body).code === 'unauthorized') return null;
  return readSession(response, body);
}

async function call(credentials: Credentials | Change): Promise<Session> {
  const response = await fetch(ADDRESS, {
    method: 'POST',
    headers: { ...sessionHeaders(), 'Content-Type': 'application/json' },
    body: JSON.stringify(credentials),
  });
  return readSession(response, await bodyOf(response));
}

export const bodyOf = (response: Response): Promise<unknown> => response.json().catch(() => null);

const NO_PERSON = { person: null, companies: null };
/** That of a gateway of an older version, during an upgrade. */
type OlderSession = Omit<Session, keyof typeof NO_PERSON>;

function readSession(response: Response, body: unknown): Session {
  if (!response.ok || body === null) throw failureOf(response.status, body);
  const { data: found } = body as { data: Session | OlderSession };
  const data = { ...NO_PERSON, ...found };
  showSession(data.kind === 'portal' ? data.key.id : data.company.id);
  return data;
}
