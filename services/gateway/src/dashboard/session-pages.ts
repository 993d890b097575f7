import {
  type Capability,
  type PortalTheme,
  type Scope,
  SCOPES,
  scopesToGrant,
} from '@posthorn/domain/access.ts';
import type {
  CompanyStore,
  KeyPerson,
  KeyRecord,
} from '@posthorn/platform/mongo/companies/companies.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { z } from 'zod';
import { nullIf404, overloaded } from '../api-error.ts';
import { assertJson, createReceiveBody, readBody } from '../http/body.ts';
import { type KnownPage, refuseMethod } from '../http/known-routes.ts';
import type { RequestDeadlines } from '../http/request-deadlines.ts';
import { REQUEST_BYTES, type RequestMemory } from '../http/request-memory.ts';
import { type Authenticate, sessionEnded } from '../keys/authenticate.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import { callerOf } from '../keys/identify.ts';
import {
  type PortalSession,
  type PortalSessions,
  readNamedSession,
  type Session,
  type SessionCookies,
  type SignInSource,
  type SessionKind,
  sessionNamed,
} from '../keys/sessions.ts';
import type { Apps } from '../projects/apps.ts';
import type { Oidc } from '../people/issuer.ts';
import type { SignInMetrics } from '../people/sign-in-metrics.ts';
import type { OpenCompany, PeopleSignIn } from '../people/sign-in.ts';
import type { SignedIn, SignIn } from './sign-in.ts';

export interface SessionPagesDeps extends DescribeSessionDeps {
  /** Null without OIDC_ISSUER. */
  oidc: Pick<Oidc, 'issuer'> | null;
  peopleSignIn: Pick<PeopleSignIn, 'change' | 'companiesOf' | 'out'>;
  signInMetrics: Pick<SignInMetrics, 'count'>;
  signIn: SignIn;
  authenticate: Authenticate;
  cookies: SessionCookies;
  portalSessions: Pick<PortalSessions, 'assertGoesOn'>;
  limits: Pick<RateLimits, 'limitCompany'>;
  /** Counts what a sign-in holds. */
  signIns: Pick<RequestMemory, 'tryReserve'>;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

export const SESSION_PATH = '/dashboard/api/session';
const SIGN_OUT_PATH = '/dashboard/api/session/sign-out';
const PORTAL_SESSION_PATH = '/dashboard/api/portal-session';

const token = z.string('must be text').min(1, 'must not be empty').max(200, 'is too long');
const ONE_OF = 'send either apiKey or link, or companyId alone';
const signInBody = z
  .object({
    apiKey: token.optional(),
    companyId: token.optional(),
    link: token.optional(),
  })
  .refine(({ apiKey, link, companyId }) => {
    const given = [apiKey, link].filter((each) => each !== undefined).length;
    return given === 1 || (given === 0 && companyId !== undefined);
  }, ONE_OF);
const signOutBody = z.object({ everywhere: z.boolean('must be true or false').optional() });
const portalBody = z.object({ link: token });

/** A key, a company and a link are far shorter, and arrive with the headers. A lost packet is sent again after 1 and 2 s. */
const SIGN_IN = { maxBytes: 4_096, withinMs: 5_000, freeChunks: 64 };

/** Returns a handler that receives the body of a sign-in. */
export function createReceive({ signIns }: Pick<SessionPagesDeps, 'signIns'>): RequestHandler {
  const receiveBody = createReceiveBody(signIns, SIGN_IN);
  return async (request, response, next) => {
    if (!signIns.tryReserve(response, REQUEST_BYTES)) throw overloaded();
    assertJson(request);
    request.body = await receiveBody(request, response);
    next();
  };
}

/** Signs in and out (docs/contract.md C19). These are for the dashboard only, and not in the OpenAPI document. */
export function sessionPages(deps: SessionPagesDeps): Router {
  const { signIn, deadlines } = deps;
  const router = Router({ caseSensitive: true, strict: true });
  const receive = createReceive(deps);
  router.post(SESSION_PATH, receive, async (request: Request, response: Response) => {
    const signingIn = signInAs(deps, request, response);
    await begin(deps, request, response, await deadlines.within(response, signingIn));
  });
  router.post(SIGN_OUT_PATH, receive, signOut(deps));
  router.all(SIGN_OUT_PATH, refuseMethod(['POST']));
  router.post(PORTAL_SESSION_PATH, receive, async (request: Request, response: Response) => {
    const { value } = readBody(request.body as Buffer, portalBody);
    const companyId = readNamedSession(request)?.id ?? null;
    const source = sourceOf(request, response);
    const signingIn = signIn.toPortal({ token: value.link, companyId }, source);
    await begin(deps, request, response, await deadlines.within(response, signingIn));
  });
  for (const [path, kind] of KINDS) {
    router.get(path, requireSession(deps, kind), showSession(deps));
    router.delete(path, endSession(deps, kind));
    router.all(path, refuseMethod(['GET', 'POST', 'DELETE']));
  }
  return router;
}

/** With a key or a link; or, in the session of a person, in another company that is open to them. */
async function signInAs(
  deps: SessionPagesDeps,
  request: Request,
  response: Response,
): Promise<SignedIn> {
  const { signIn, signInMetrics, peopleSignIn, authenticate } = deps;
  const { apiKey, companyId, link } = readBody(request.body as Buffer, signInBody).value;
  const source = sourceOf(request, response);
  if (apiKey !== undefined) {
    return signInMetrics.count('key', () => signIn.byKey({ apiKey, companyId }, source));
  }
  if (link !== undefined) return signInMetrics.count('link', () => signIn.byLink(link, source));
  const before = sessionOf(deps, request, 'company');
  const session = await peopleSignIn.change(before, companyId ?? '', source);
  const { keyHash } = session;
  return { session, key: await authenticate({ keyHash, address: source.address }) };
}

/** Ends the session first. Returns the address at which the person signs out of the issuer too. */
function signOut(deps: SessionPagesDeps): RequestHandler {
  const { cookies, peopleSignIn, signIn, oidc, deadlines } = deps;
  return async (request, response) => {
    const { everywhere = false } = readBody(request.body as Buffer, signOutBody).value;
    if (readNamedSession(request) === null) throw sessionEnded();
    const session = cookies.read(request, 'company') ? sessionOf(deps, request, 'company') : null;
    cookies.clear(request, response, 'company');
    const source = sourceOf(request, response);
    const end = async (): Promise<string | null> => {
      if (!session) return null;
      const idToken = await peopleSignIn.out(session, everywhere, source);
      if (idToken !== undefined) return oidc?.issuer.endSessionUrl(idToken) ?? null;
      await signIn.out(session, source);
      return null;
    };
    const endSessionUrl = await deadlines.within(response, end());
    response.json({ success: true, message: 'Signed out', data: { endSessionUrl } });
  };
}

const KINDS = [
  [SESSION_PATH, 'company'],
  [PORTAL_SESSION_PATH, 'portal'],
] as const;

export const SESSION_PAGES: KnownPage[] = [
  ...KINDS.map(([path]) => ({ path, methods: ['GET', 'POST', 'DELETE'] })),
  { path: SIGN_OUT_PATH, methods: ['POST'] },
];

/** Throws ApiError 401 for none, and for another one than the page shows. */
function sessionOf(
  { cookies }: Pick<SessionPagesDeps, 'cookies'>,
  request: Request,
  kind: SessionKind,
): Session {
  return sessionNamed(cookies, request, { kind, id: readNamedSession(request)?.id ?? null });
}

/** Leaves the session in `locals.signedIn`, and whose request it is in `locals.caller`. */
function requireSession(deps: SessionPagesDeps, kind: SessionKind): RequestHandler {
  const { authenticate, portalSessions, deadlines, limits } = deps;
  return async (request, response, next) => {
    const session = sessionOf(deps, request, kind);
    const { keyHash } = session;
    const key = await deadlines.within(response, authenticate({ keyHash, address: request.ip }));
    await deadlines.within(response, portalSessions.assertGoesOn(session));
    response.locals.signedIn = { session, key };
    response.locals.caller = callerOf(session, key);
    limits.limitCompany(response);
    next();
  };
}

function showSession(deps: SessionPagesDeps): RequestHandler {
  return async (_request, response) => {
    await send(deps, response, 'Session found', response.locals.signedIn as SignedIn);
  };
}

function endSession(deps: SessionPagesDeps, kind: SessionKind): RequestHandler {
  const { cookies, deadlines } = deps;
  return async (request, response) => {
    const session = cookies.read(request, kind) ? sessionOf(deps, request, kind) : null;
    // First: the browser forgets the session also when the rest fails.
    cookies.clear(request, response, kind);
    const source = sourceOf(request, response);
    if (session) await deadlines.within(response, deps.signIn.out(session, source));
    response.json({ success: true, message: 'Signed out' });
  };
}

export function sourceOf(request: Request, response: Response): SignInSource {
  const requestId = String(response.locals.requestId);
  return { address: request.ip, userAgent: request.get('user-agent'), requestId };
}

async function begin(
  deps: SessionPagesDeps,
  request: Request,
  response: Response,
  signedIn: SignedIn,
): Promise<void> {
  deps.cookies.set(request, response, signedIn.session);
  await send(deps, response, 'Signed in', signedIn);
}

async function send(
  deps: SessionPagesDeps,
  response: Response,
  message: string,
  { session, key }: SignedIn,
): Promise<void> {
  const data = await deps.deadlines.within(response, describeSession(deps, session, key));
  response.json({ success: true, message, data });
}

/** A session as its page reads it. */
interface SessionResponse {
  kind: Session['kind'];
  company: { id: string; name: string };
  /** For a visitor of the portal, the link in place of a key. */
  key: { id: string; scopes: Scope[]; appId: string | null };
  expiresAt: string;
  portal: PortalResponse | null;
  /** Both null for a session that a key or a link began. */
  person: KeyPerson | null;
  /** The companies that are open to the person. */
  companies: OpenCompany[] | null;
}

interface PortalResponse {
  app: { id: string; name: string };
  capabilities: Capability[];
  theme: PortalTheme;
}

interface DescribeSessionDeps {
  peopleSignIn: Pick<PeopleSignIn, 'companiesOf'>;
  companies: Pick<CompanyStore, 'nameOf'>;
  links: Pick<LinkStore, 'themeOf'>;
  apps: Pick<Apps, 'get'>;
}

/** Throws ApiError 401 when the app of the portal was deleted. */
async function describeSession(
  deps: DescribeSessionDeps,
  session: Session,
  key: KeyRecord,
): Promise<SessionResponse> {
  const { kind, companyId, endsAtMs } = session;
  return {
    kind,
    company: { id: companyId, name: (await deps.companies.nameOf(companyId)) ?? '' },
    key: kind === 'company' ? describeKey(key) : describeVisitor(session),
    expiresAt: new Date(Math.min(endsAtMs, key.expiresAtMs ?? Infinity)).toISOString(),
    portal: kind === 'company' ? null : await describePortal(deps, session),
    person: key.person ?? null,
    companies: key.person ? await deps.peopleSignIn.companiesOf(session) : null,
  };
}

function describeKey({ keyId, scopes, appId }: KeyRecord): SessionResponse['key'] {
  return { id: keyId, scopes: scopes.includes('admin') ? [...SCOPES] : [...scopes], appId };
}

/** The scopes decide what the dashboard offers, and the capabilities what the gateway allows. */
function describeVisitor({ linkId, appId, capabilities }: PortalSession): SessionResponse['key'] {
  const offered = capabilities.filter((capability) => capability !== 'secrets');
  return { id: linkId, scopes: scopesToGrant(offered), appId };
}

async function describePortal(
  { apps, links }: DescribeSessionDeps,
  { companyId, appId, tokenHash, capabilities }: PortalSession,
): Promise<PortalResponse> {
  const app = await apps.get(companyId, appId).catch(nullIf404);
  if (!app) throw sessionEnded();
  const theme = (await links.themeOf(tokenHash)) ?? {};
  return { app: { id: appId, name: app.name }, capabilities, theme };
}
