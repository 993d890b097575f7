import {
  type Capability,
  type PortalTheme,
  type Scope,
  SCOPES,
  scopesToGrant,
} from '@posthorn/domain/access.ts';
import type { CompanyStore, KeyRecord } from '@posthorn/platform/mongo/companies/companies.ts';
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
  type SessionKind,
  sessionNamed,
} from '../keys/sessions.ts';
import type { Apps } from '../projects/apps.ts';
import type { SignedIn, SignIn, SignInSource } from './sign-in.ts';

export interface SessionPagesDeps extends DescribeSessionDeps {
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
const PORTAL_SESSION_PATH = '/dashboard/api/portal-session';

const token = z.string('must be text').min(1, 'must not be empty').max(200, 'is too long');
const ONE_OF = 'send either apiKey or link';
const signInBody = z
  .object({
    apiKey: token.optional(),
    companyId: token.optional(),
    link: token.optional(),
  })
  .refine(({ apiKey, link }) => (apiKey === undefined) !== (link === undefined), ONE_OF);
const portalBody = z.object({ link: token });

/** A key, a company and a link are far shorter, and arrive with the headers. A lost packet is sent again after 1 and 2 s. */
const SIGN_IN = { maxBytes: 4_096, withinMs: 5_000, freeChunks: 64 };

/** Signs in and out (docs/contract.md C19). These are for the dashboard only, and not in the OpenAPI document. */
export function sessionPages(deps: SessionPagesDeps): Router {
  const { signIn, signIns, deadlines } = deps;
  const router = Router({ caseSensitive: true, strict: true });
  const receiveBody = createReceiveBody(signIns, SIGN_IN);
  const receive: RequestHandler = async (request, response, next) => {
    if (!signIns.tryReserve(response, REQUEST_BYTES)) throw overloaded();
    assertJson(request);
    request.body = await receiveBody(request, response);
    next();
  };

  router.post(SESSION_PATH, receive, async (request: Request, response: Response) => {
    const { apiKey, companyId, link = '' } = readBody(request.body as Buffer, signInBody).value;
    const source = sourceOf(request, response);
    const signingIn =
      apiKey === undefined
        ? signIn.byLink(link, source)
        : signIn.byKey({ apiKey, companyId }, source);
    await begin(deps, request, response, await deadlines.within(response, signingIn));
  });
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

const KINDS = [
  [SESSION_PATH, 'company'],
  [PORTAL_SESSION_PATH, 'portal'],
] as const;

export const SESSION_PAGES: KnownPage[] = KINDS.map(([path]) => {
  return { path, methods: ['GET', 'POST', 'DELETE'] };
});

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

function sourceOf(request: Request, response: Response): SignInSource {
  return { address: request.ip, requestId: String(response.locals.requestId) };
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
}

interface PortalResponse {
  app: { id: string; name: string };
  capabilities: Capability[];
  theme: PortalTheme;
}

interface DescribeSessionDeps {
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
