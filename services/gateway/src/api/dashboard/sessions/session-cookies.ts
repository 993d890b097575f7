import type { SignedStatements } from '@posthorn/platform/vault/signed-statements.ts';
import type { CookieOptions, Request, Response } from 'express';
import { sessionSchema, type Session, type SessionKind } from './session.ts';

/** The cookies that hold sessions, in requests and responses. A browser may have one of each kind. */
export interface SessionCookies {
  /** Null without the cookie of a session of this kind that has not ended. */
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
      const text = cookieOf(request, NAMES[kind]);
      const session = text === null ? null : parseSession(statements.read(text));
      return session?.kind === kind && session.endsAtMs > nowMs() ? session : null;
    },
    set(request, response, session) {
      const { kind } = session;
      const maxAge = Math.max(0, session.endsAtMs - nowMs());
      const value = statements.sign(JSON.stringify(session));
      response.cookie(NAMES[kind], value, { ...optionsOf(request, kind, publicUrl), maxAge });
    },
    clear(request, response, kind) {
      response.clearCookie(NAMES[kind], optionsOf(request, kind, publicUrl));
    },
  };
}

/**
 * Scripts cannot read it. Strict: no other site can make the browser send it, not even with a link. The portal is in
 * frames of other sites, so its cookie must be sent there, which browsers allow over https only; `Partitioned`
 * keeps it to frames in pages of the site in which the link was opened.
 */
function optionsOf(
  request: Request,
  kind: SessionKind,
  publicUrl: string | undefined,
): CookieOptions {
  const url = publicUrl === undefined ? null : new URL(publicUrl);
  const secure = url ? url.protocol === 'https:' : request.secure;
  const isFramed = kind === 'portal' && secure;
  return {
    httpOnly: true,
    secure,
    sameSite: isFramed ? 'none' : 'strict',
    partitioned: isFramed,
    path: url?.pathname ?? '/',
    encode: String,
  };
}

function parseSession(text: string | null): Session | null {
  return text === null ? null : (sessionSchema.safeParse(JSON.parse(text)).data ?? null);
}

/** RFC 6265, 4.2. The browser sends the cookie with the longest path first. */
function cookieOf(request: Request, name: string): string | null {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2);
    if (key === name) return value ?? null;
  }
  return null;
}
