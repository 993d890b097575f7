import type { SignedStatements } from '@posthorn/platform/vault/signed-statements.ts';
import type { CookieOptions, Request, Response } from 'express';
import { sessionSchema, type Session, type SessionKind } from './session.ts';

/** The cookies that hold sessions, in requests and responses. A browser may have one of each kind. */
export interface SessionCookies {
  /** Null without the cookie of a session of this kind that has not ended, and with two. */
  read: (request: Request, kind: SessionKind) => Session | null;
  set: (request: Request, response: Response, session: Session) => void;
  clear: (request: Request, response: Response, kind: SessionKind) => void;
}

export interface SessionCookieDeps {
  statements: SignedStatements;
  /** PUBLIC_URL. */
  publicUrl: string | undefined;
  nowMs: () => number;
}

const NAMES: Record<SessionKind, string> = {
  company: 'posthorn_session',
  portal: 'posthorn_portal',
};

export function createSessionCookies(deps: SessionCookieDeps): SessionCookies {
  const { statements, publicUrl, nowMs } = deps;
  return {
    read(request, kind) {
      const { name } = placeOf(request, kind, publicUrl);
      const text = cookieOf(request, name);
      const session = text === null ? null : parseSession(statements.read(text));
      return session?.kind === kind && session.endsAtMs > nowMs() ? session : null;
    },
    set(request, response, session) {
      const { name, options } = placeOf(request, session.kind, publicUrl);
      const maxAge = Math.max(0, session.endsAtMs - nowMs());
      response.cookie(name, statements.sign(JSON.stringify(session)), { ...options, maxAge });
    },
    clear(request, response, kind) {
      const { name, options } = placeOf(request, kind, publicUrl);
      response.clearCookie(name, options);
    },
  };
}

/** Where a cookie is in the browser. */
interface Place {
  name: string;
  options: CookieOptions;
}

/** Browsers take a cookie with this name from the host itself only, over https, and for all of its paths (RFC 6265bis). */
const OF_THIS_HOST = '__Host-';

/**
 * Scripts cannot read it. Strict: no other site can make the browser send it, not even with a link. The portal is in
 * frames of other sites, so its cookie must be sent there, which browsers allow over https only; `Partitioned`
 * keeps it to frames in pages of the site in which the link was opened.
 */
function placeOf(request: Request, kind: SessionKind, publicUrl: string | undefined): Place {
  const url = publicUrl === undefined ? null : new URL(publicUrl);
  const secure = url ? url.protocol === 'https:' : request.secure;
  const isFramed = kind === 'portal' && secure;
  return {
    name: secure ? OF_THIS_HOST + NAMES[kind] : NAMES[kind],
    options: {
      httpOnly: true,
      secure,
      sameSite: isFramed ? 'none' : 'strict',
      partitioned: isFramed,
      path: secure ? '/' : (url?.pathname ?? '/'),
      encode: String,
    },
  };
}

function parseSession(text: string | null): Session | null {
  return text === null ? null : (sessionSchema.safeParse(JSON.parse(text)).data ?? null);
}

/**
 * RFC 6265, 4.2. Null also for two of one name: another host of the same domain, or another path, has set one of them,
 * and nothing tells which is ours.
 */
function cookieOf(request: Request, name: string): string | null {
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim().split('=', 2));
  const [found, another] = pairs.filter(([key]) => key === name);
  return another === undefined ? (found?.[1] ?? null) : null;
}
