import type { SignedStatements } from '@posthorn/platform/security/signed-statements.ts';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { cookieOf, type CookiePlace, cookiePlace, cookiesOf } from '../keys/sessions.ts';

const attemptSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** The page that the browser goes to afterwards. */
  to: z.string(),
  /** The company that the person wants to enter; null for any. */
  companyId: z.string().nullable(),
  /** The hash of the token of an invitation. */
  invitation: z.string().nullable(),
  /** The hash of the key of the session that the browser had. Its cookie is not sent on the way back from another site. */
  replaces: z.string().nullable(),
  /** Milliseconds since 1970. */
  endsAtMs: z.number(),
});

/**
 * A sign-in that has begun. The browser keeps it in a signed cookie, so that any gateway can finish it and none stores
 * anything about it.
 */
export type Attempt = z.infer<typeof attemptSchema>;

/** `foreign`: the browser has an attempt of nearly this name, whose state is another one. */
type TakenAttempt = { kind: 'attempt'; attempt: Attempt } | { kind: 'expired' | 'foreign' };

const refusalSchema = z.object({ code: z.string(), groups: z.array(z.string()) });

/** Why a sign-in was refused, and the groups of the person, for the page that says so. */
export type Refusal = z.infer<typeof refusalSchema>;

export interface AttemptCookies extends RefusalCookie {
  /** Stores the attempt, and forgets the oldest ones of this browser beyond four others. */
  store: (request: Request, response: Response, attempt: Attempt) => void;
  /** Returns the attempt with this state, which the browser forgets. */
  take: (request: Request, response: Response, state: string) => TakenAttempt;
}

type GivenRefusal = Pick<Refusal, 'code'> & { groups: readonly string[] };

interface RefusalCookie {
  /** Keeps why the last sign-in of this browser was refused, until the next one begins: ten minutes at most. */
  storeRefused: (request: Request, response: Response, refusal: GivenRefusal) => void;
  readRefused: (request: Request) => Refusal | null;
  clearRefused: (request: Request, response: Response) => void;
}

interface AttemptCookieDeps {
  statements: SignedStatements;
  publicUrl: string | undefined;
  nowMs: () => number;
}

export const ATTEMPT_MS = 600_000;
/** Tabs in which a person signs in at the same time. A cookie has up to 3 KB, and a request 16 KB of headers. */
const MAX_ATTEMPTS = 5;
const PREFIX = 'posthorn_oidc_';
const SHOWN_CHARS = 8;
const NAME = /^(?:__Host-)?(?<name>posthorn_oidc_[\w-]{8})$/;

/** Names the use of the key that signs the cookies (RFC 5869, `info`). */
export const ATTEMPT_KEY_USE = 'posthorn sign-in attempts v1';

export function createAttemptCookies(deps: AttemptCookieDeps): AttemptCookies {
  const { statements, publicUrl, nowMs } = deps;
  /** Lax: the browser sends it on the way back from the issuer, which is another site. */
  const placeOf = (request: Request, name: string): CookiePlace => {
    const place = cookiePlace(request, name, publicUrl);
    return { ...place, options: { ...place.options, sameSite: 'lax' } };
  };
  const read = (request: Request, name: string): Attempt | null => {
    const text = cookieOf(request, placeOf(request, name).name);
    const statement = text === null ? null : statements.read(text);
    const attempt = statement === null ? null : attemptSchema.safeParse(JSON.parse(statement)).data;
    return attempt && attempt.endsAtMs > nowMs() ? attempt : null;
  };
  const clear = (request: Request, response: Response, name: string): void => {
    const place = placeOf(request, name);
    response.clearCookie(place.name, place.options);
  };
  const refusals = createRefusalCookie(deps);
  return {
    ...refusals,
    store(request, response, attempt) {
      const names = cookiesOf(request).flatMap(
        ([name = '']) => NAME.exec(name)?.groups?.name ?? [],
      );
      const others = [...new Set(names)]
        .map((name) => ({ name, endsAtMs: read(request, name)?.endsAtMs ?? 0 }))
        .sort((one, other) => other.endsAtMs - one.endsAtMs);
      const kept = others.filter(({ endsAtMs }) => endsAtMs > 0).slice(0, MAX_ATTEMPTS - 1);
      for (const other of others) if (!kept.includes(other)) clear(request, response, other.name);
      const { name, options } = placeOf(request, nameOf(attempt.state));
      const maxAge = Math.max(0, attempt.endsAtMs - nowMs());
      response.cookie(name, statements.sign(JSON.stringify(attempt)), { ...options, maxAge });
      refusals.clearRefused(request, response);
    },
    take(request, response, state) {
      const name = nameOf(state);
      const attempt = read(request, name);
      if (!attempt) return { kind: 'expired' };
      clear(request, response, name);
      return attempt.state === state ? { kind: 'attempt', attempt } : { kind: 'foreign' };
    },
  };
}

function createRefusalCookie({ statements, publicUrl }: AttemptCookieDeps): RefusalCookie {
  const placeOf = (request: Request): CookiePlace => cookiePlace(request, REFUSED, publicUrl);
  return {
    storeRefused(request, response, { code, groups }) {
      const { name, options } = placeOf(request);
      const statement = statements.sign(JSON.stringify({ code, groups: shortened(groups) }));
      response.cookie(name, statement, { ...options, maxAge: ATTEMPT_MS });
    },
    readRefused(request) {
      const text = cookieOf(request, placeOf(request).name);
      const statement = text === null ? null : statements.read(text);
      if (statement === null) return null;
      return refusalSchema.safeParse(JSON.parse(statement)).data ?? null;
    },
    clearRefused(request, response) {
      const { name, options } = placeOf(request);
      if (cookieOf(request, name) !== null) response.clearCookie(name, options);
    },
  };
}

const REFUSED = 'posthorn_refused';
/** A signed statement has 3 KB at most, and the list is for people. */
const MAX_GROUPS_BYTES = 2_000;

/** Returns the first groups, as many as fit into a cookie. */
function shortened(groups: readonly string[]): string[] {
  let bytes = 0;
  return groups.filter((group) => {
    bytes += Buffer.byteLength(JSON.stringify(group)) + 1;
    return bytes <= MAX_GROUPS_BYTES;
  });
}

const nameOf = (state: string): string => PREFIX + state.slice(0, SHOWN_CHARS);

const FIRST_PAGE = '/dashboard/';
const MAX_CHARS = 1_000;
const UNSAFE = /[^\x21-\x7e]|\\|\/\//;
/** The portal has sessions of its own, and addresses of the gateway are no pages. */
const NO_PAGE = /^\/dashboard\/(portal|api)(\/|$)/;

/** Returns the page of the dashboard that a text names; the first page for every other text. */
export function pageNamed(text: string): string {
  if (text.length > MAX_CHARS || UNSAFE.test(text) || !text.startsWith(FIRST_PAGE)) {
    return FIRST_PAGE;
  }
  // Browsers leave a folder at `..`, also when it is written with percent signs.
  const base = 'https://dashboard.invalid';
  const url = URL.parse(text, base);
  if (url?.origin !== base || !url.pathname.startsWith(FIRST_PAGE)) return FIRST_PAGE;
  return NO_PAGE.test(url.pathname) ? FIRST_PAGE : url.href.slice(base.length);
}
