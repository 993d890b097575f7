import { isId } from '@posthorn/domain/ids.ts';
import { hashOfToken } from '@posthorn/platform/mongo/companies/links.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { ApiError, overloaded, toApiError } from '../api-error.ts';
import { createReceiveBody, readBody } from '../http/body.ts';
import { type KnownPage, refuseMethod } from '../http/known-routes.ts';
import type { RequestDeadlines } from '../http/request-deadlines.ts';
import { REQUEST_BYTES, type RequestMemory } from '../http/request-memory.ts';
import type { SessionCookies, SignInSource } from '../keys/sessions.ts';
import type { WrongKeys } from '../limits/rate-limits.ts';
import type { LogOutByIssuer } from '../people/back-channel.ts';
import { CALLBACK_PATH, type Issued, type Oidc } from '../people/issuer.ts';
import {
  type Attempt,
  ATTEMPT_MS,
  type AttemptCookies,
  pageNamed,
} from '../people/sign-in-attempt.ts';
import type { SignInMetrics } from '../people/sign-in-metrics.ts';
import type { PeopleSignIn } from '../people/sign-in.ts';
import { sourceOf } from './session-pages.ts';
import type { SignIn } from './sign-in.ts';

export interface OidcPagesDeps {
  /** Null without OIDC_ISSUER. */
  oidc: Oidc | null;
  attempts: AttemptCookies;
  cookies: Pick<SessionCookies, 'read' | 'set'>;
  signIn: Pick<SignIn, 'checkInvitation'>;
  peopleSignIn: Pick<PeopleSignIn, 'enter'>;
  logOutByIssuer: LogOutByIssuer;
  wrongKeys: WrongKeys;
  signInMetrics: Pick<SignInMetrics, 'count'>;
  /** Receives a body of JSON. */
  receive: RequestHandler;
  signIns: Pick<RequestMemory, 'tryReserve'>;
  deadlines: Pick<RequestDeadlines, 'within'>;
  logger: Pick<Logger, 'error'>;
  nowMs: () => number;
}

const OFFERS_PATH = '/dashboard/api/sign-in';
const BEGIN_PATH = '/dashboard/api/oidc';
const LOGOUT_PATH = '/dashboard/api/oidc/back-channel-logout';

export const OIDC_PAGES: KnownPage[] = [
  { path: OFFERS_PATH, methods: ['GET'] },
  { path: BEGIN_PATH, methods: ['POST'] },
  { path: CALLBACK_PATH, methods: ['GET'] },
  { path: LOGOUT_PATH, methods: ['POST'] },
];

const token = z.string('must be text').min(1, 'must not be empty').max(200, 'is too long');
const beginBody = z.object({
  to: z.string('must be text').optional(),
  companyId: token.optional(),
  invitation: token.optional(),
  again: z.boolean('must be true or false').optional(),
});

/** The way of a person to the issuer and back (docs/contract.md C26). Not in the OpenAPI document. */
export function oidcPages(deps: OidcPagesDeps): Router {
  const { oidc, receive } = deps;
  const router = Router({ caseSensitive: true, strict: true });
  router.get(OFFERS_PATH, showOffers(deps));
  router.all(OFFERS_PATH, refuseMethod(['GET']));
  if (!oidc) {
    for (const { path } of OIDC_PAGES) router.all(path, refuseWithoutIssuer);
    return router;
  }
  const ways = { ...deps, ...oidc, underWay: createUnderWay(deps) };
  router.post(BEGIN_PATH, receive, beginSignIn(ways));
  router.get(CALLBACK_PATH, finishSignIn(ways));
  router.post(LOGOUT_PATH, receiveForm(deps), logOut(ways));
  for (const { path, methods } of OIDC_PAGES) router.all(path, refuseMethod(methods));
  return router;
}

/** docs/contract.md C26.1. */
const refuseWithoutIssuer: RequestHandler = ({ method, path }) => {
  throw new ApiError('route_not_found', `There is no ${method} ${path}.`);
};

type Ways = OidcPagesDeps & Oidc & { underWay: UnderWay };

/** Shows how one may sign in, and why the sign-in of just before was refused. */
function showOffers({ oidc, attempts }: OidcPagesDeps): RequestHandler {
  return (request, response) => {
    const data = {
      oidc: oidc && { issuer: oidc.config.issuer },
      apiKey: oidc?.config.isOnly !== true,
      refused: oidc && attempts.readRefused(request),
    };
    response.json({ success: true, message: 'Ways to sign in found', data });
  };
}

const SECRET_BYTES = 32;
const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url');

function beginSignIn(ways: Ways): RequestHandler {
  const { issuer, attempts, cookies, signIn, underWay, deadlines } = ways;
  return async (request, response) => {
    const asked = readBody(request.body as Buffer, beginBody).value;
    const { to = '', companyId = '', invitation, again = false } = asked;
    if (invitation !== undefined) {
      const source = sourceOf(request, response);
      await deadlines.within(response, signIn.checkInvitation(invitation, source));
    }
    const challenge = { state: newSecret(), nonce: newSecret(), verifier: newSecret() };
    const url = await underWay.run(response, () => issuer.begin(challenge, again));
    attempts.store(request, response, {
      ...challenge,
      to: pageNamed(to),
      companyId: isId('comp', companyId) ? companyId : null,
      invitation: invitation === undefined ? null : hashOfToken(invitation),
      replaces: cookies.read(request, 'company')?.keyHash ?? null,
      endsAtMs: ways.nowMs() + ATTEMPT_MS,
    });
    response.json({ success: true, message: 'Sign-in begun', data: { url } });
  };
}

const SEE_OTHER = 303;

/** The browser comes back from the issuer. It leaves for a page in every case: people see no JSON. */
function finishSignIn(ways: Ways): RequestHandler {
  const { config, attempts, signInMetrics, logger } = ways;
  return async (request, response) => {
    const goTo = (path: string): void => {
      response.redirect(SEE_OTHER, config.publicUrl + path);
    };
    const shown: { groups: readonly string[] } = { groups: [] };
    const onIssued = ({ groups }: Issued): void => {
      if (groups.kind === 'known') shown.groups = groups.groups;
    };
    try {
      const finish = () => enter(ways, request, response, onIssued);
      goTo(await signInMetrics.count('issuer', finish));
    } catch (error) {
      const { code } = toApiError(error);
      const { requestId } = sourceOf(request, response);
      if (!(error instanceof ApiError)) logger.error({ err: error, requestId }, 'sign-in failed');
      attempts.storeRefused(request, response, { code, groups: shown.groups });
      goTo(`/dashboard/sign-in?error=${code}`);
    }
  };
}

/** Begins the session. Returns the page to go to. */
async function enter(
  ways: Ways,
  request: Request,
  response: Response,
  onIssued: (issued: Issued) => void,
): Promise<string> {
  const { issuer, underWay, peopleSignIn, cookies, deadlines } = ways;
  const source = sourceOf(request, response);
  const query = queryOf(request);
  const attempt = await takeAttempt(ways, request, response);
  const issued = await countWrong(ways, source, () =>
    underWay.run(response, () => issuer.finish(query, attempt)),
  );
  onIssued(issued);
  const session = await countWrong(ways, source, () =>
    deadlines.within(response, peopleSignIn.enter(issued, attempt, source)),
  );
  cookies.set(request, response, session);
  return attempt.to;
}

const queryOf = ({ url }: Request): string => {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start);
};

async function takeAttempt(ways: Ways, request: Request, response: Response): Promise<Attempt> {
  const { attempts, wrongKeys } = ways;
  const source = sourceOf(request, response);
  const state = new URLSearchParams(queryOf(request)).get('state') ?? '';
  return countWrong(ways, source, async () => {
    const take = () => Promise.resolve(attempts.take(request, response, state));
    const taken = await wrongKeys.lookUp(source.address, take, ({ kind }) => kind === 'attempt');
    if (taken.kind === 'attempt') return taken.attempt;
    throw new ApiError(taken.kind === 'foreign' ? 'sign_in_invalid' : 'sign_in_expired');
  });
}

/** What a guess would be refused with counts as a wrong key (docs/contract.md C4.4). */
const GUESSES = new Set([
  'sign_in_expired',
  'sign_in_invalid',
  'link_unknown',
  'link_used',
  'link_revoked',
  'link_expired',
]);

async function countWrong<Result>(
  { wrongKeys }: Pick<Ways, 'wrongKeys'>,
  { address }: SignInSource,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && GUESSES.has(error.code)) wrongKeys.count(address);
    throw error;
  }
}

const FORM = /^application\/x-www-form-urlencoded *(;|$)/i;
/** A logout token may have 16 KiB, and percent signs make none of its characters longer. */
const LOGOUT = { maxBytes: 17_408, withinMs: 5_000, freeChunks: 64 };

function receiveForm({ signIns }: OidcPagesDeps): RequestHandler {
  const receiveBody = createReceiveBody(signIns, LOGOUT);
  return async (request, response, next) => {
    if (!FORM.test(request.get('content-type') ?? '')) throw new ApiError('sign_in_invalid');
    if (!signIns.tryReserve(response, REQUEST_BYTES)) throw overloaded();
    request.body = await receiveBody(request, response);
    next();
  };
}

/** The issuer ends sessions (OpenID Connect Back-Channel Logout 1.0). */
function logOut(ways: Ways): RequestHandler {
  const { issuer, underWay, logOutByIssuer, deadlines } = ways;
  return async (request, response) => {
    const source = sourceOf(request, response);
    const form = new URLSearchParams((request.body as Buffer).toString('utf8'));
    const logoutToken = form.get('logout_token') ?? '';
    const reading = ways.wrongKeys.lookUp(
      source.address,
      () => underWay.run(response, () => issuer.readLogoutToken(logoutToken)),
      () => true,
    );
    const loggedOut = await countWrong(ways, source, () => reading);
    await deadlines.within(response, logOutByIssuer(loggedOut));
    response.json({ success: true, message: 'Sessions ended' });
  };
}

interface UnderWay {
  /**
   * Returns what the issuer says. Throws ApiError 503 `sign_in_unavailable` when too many wait for it, and when the time
   * of the request is over. Work whose request was refused counts until it ends.
   */
  run: <Result>(response: Response, work: () => Promise<Result>) => Promise<Result>;
}

const MAX_UNDER_WAY = 100;

function createUnderWay({ deadlines }: Pick<OidcPagesDeps, 'deadlines'>): UnderWay {
  let running = 0;
  return {
    async run(response, work) {
      if (running >= MAX_UNDER_WAY) throw new ApiError('sign_in_unavailable');
      running += 1;
      const ended = work().finally(() => {
        running -= 1;
      });
      return deadlines.within(response, ended).catch(issuerTooSlow);
    },
  };
}

/** The page would otherwise blame a store: each request to the issuer may be in time, and all of them together not. */
function issuerTooSlow(error: unknown): never {
  const isOver = error instanceof ApiError && error.code === 'unavailable';
  throw isOver ? new ApiError('sign_in_unavailable') : error;
}
