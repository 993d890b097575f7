import type { SignedStatements } from '@posthorn/platform/vault/signed-statements.ts';
import type { CookieOptions, Request, Response } from 'express';
import { sessionSchema, type Session } from './session.ts';

/** The cookies that hold sessions, in requests and responses. */
export interface SessionCookies {
  /** Null without the cookie of a session that has not ended. */
  read: (request: Request) => Session | null;
  set: (request: Request, response: Response, session: Session) => void;
  clear: (request: Request, response: Response) => void;
}

export interface SessionCookieDeps {
  statements: SignedStatements;
  /** PUBLIC_URL. */
  publicUrl: string | undefined;
  nowMs: () => number;
}

const NAME = 'posthorn_session';

export function createSessionCookies(deps: SessionCookieDeps): SessionCookies {
  const { statements, publicUrl, nowMs } = deps;
  return {
    read(request) {
      const text = cookieOf(request, NAME);
      const session = text === null ? null : parseSession(statements.read(text));
      return session && session.endsAtMs > nowMs() ? session : null;
    },
    set(request, response, session) {
      const maxAge = Math.max(0, session.endsAtMs - nowMs());
      const value = statements.sign(JSON.stringify(session));
      response.cookie(NAME, value, { ...optionsFor(request, publicUrl), maxAge });
    },
    clear(request, response) {
      response.clearCookie(NAME, optionsFor(request, publicUrl));
    },
  };
}

/** Strict: no other site can make the browser send it, not even with a link. Scripts cannot read it. */
function optionsFor(request: Request, publicUrl: string | undefined): CookieOptions {
  const url = publicUrl === undefined ? null : new URL(publicUrl);
  return {
    httpOnly: true,
    sameSite: 'strict',
    path: url?.pathname ?? '/',
    secure: url ? url.protocol === 'https:' : request.secure,
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
