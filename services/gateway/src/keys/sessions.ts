import { CAPABILITIES } from '@posthorn/domain/access.ts';
import { CoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import type { SignedStatements } from '@posthorn/platform/security/signed-statements.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { CookieOptions, Request, Response } from 'express';
import { z } from 'zod';
import { ApiError } from '../api-error.ts';
import type { Apps } from '../projects/apps.ts';
import { SESSION_HEADER, sessionEnded } from './authenticate.ts';

/** How long a person stays signed in. A session of the portal ends with its link. */
export const SESSION_MS = 12 * 3_600_000;

const common = {
  companyId: z.string(),
  /** SHA-256 of the API key, in hex: no one can use it in place of the key. */
  keyHash: z.string(),
  /** Milliseconds since 1970. */
  endsAtMs: z.number(),
};

const companySchema = z.object({ kind: z.literal('company'), ...common });

const portalSchema = z.object({
  kind: z.literal('portal'),
  ...common,
  appId: z.string(),
  linkId: z.string(),
  /** The key of the link's theme. */
  tokenHash: z.string(),
  capabilities: z.array(z.enum(CAPABILITIES)),
});

/**
 * The statement of a session cookie. It grants nothing by itself: each request looks up whether the key of the session
 * still exists and what it may do, as for the key itself.
 */
const sessionSchema = z.discriminatedUnion('kind', [companySchema, portalSchema]);

export type Session = z.infer<typeof sessionSchema>;
export type PortalSession = z.infer<typeof portalSchema>;
export type SessionKind = Session['kind'];

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
export interface CookiePlace {
  name: string;
  options: CookieOptions;
}

/** Browsers take a cookie with this name from the host itself only, over https, and for all of its paths (RFC 6265bis). */
const OF_THIS_HOST = '__Host-';

/**
 * Returns where a cookie with this name is. Scripts cannot read it. Strict: no other site can make the browser send it, not
 * even with a link.
 */
export function cookiePlace(
  request: Request,
  name: string,
  publicUrl: string | undefined,
): CookiePlace {
  const url = publicUrl === undefined ? null : new URL(publicUrl);
  const secure = url ? url.protocol === 'https:' : request.secure;
  const path = secure ? '/' : (url?.pathname ?? '/');
  return {
    name: secure ? OF_THIS_HOST + name : name,
    options: { httpOnly: true, secure, sameSite: 'strict', path, encode: String },
  };
}

/**
 * The portal is in frames of other sites, so its cookie must be sent there, which browsers allow over https only;
 * `Partitioned` keeps it to frames in pages of the site in which the link was opened.
 */
function placeOf(request: Request, kind: SessionKind, publicUrl: string | undefined): CookiePlace {
  const { name, options } = cookiePlace(request, NAMES[kind], publicUrl);
  if (kind === 'company' || options.secure !== true) return { name, options };
  return { name, options: { ...options, sameSite: 'none', partitioned: true } };
}

function parseSession(text: string | null): Session | null {
  return text === null ? null : (sessionSchema.safeParse(JSON.parse(text)).data ?? null);
}

/**
 * RFC 6265, 4.2. Null also for two of one name: another host of the same domain, or another path, has set one of them,
 * and it is unknown which cookie is ours.
 */
export function cookieOf(request: Request, name: string): string | null {
  const [found, another] = cookiesOf(request).filter(([key]) => key === name);
  return another === undefined ? (found?.[1] ?? null) : null;
}

/** Returns names and values of all cookies of a request. */
export function cookiesOf({ headers }: Request): string[][] {
  return (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('=', 2));
}

/** Where a sign-in comes from, for limits, the audit log, and the list of a person's sessions. */
export interface SignInSource {
  address: string | undefined;
  requestId: string;
  userAgent?: string | undefined;
}

/** The session that a page means. */
interface NamedSession {
  kind: SessionKind;
  /** The company or the link that the page shows; null when the page does not know it yet. */
  id: string | null;
}

/** Returns the session that a request names: `1` or `portal`, and an id behind it; null without the header. */
export function readNamedSession(request: Request): NamedSession | null {
  const text = request.get(SESSION_HEADER);
  if (text === undefined) return null;
  const [kind, id] = text.trim().split(' ');
  return { kind: kind === 'portal' ? 'portal' : 'company', id: id ?? null };
}

/**
 * Returns the session of the browser. Throws ApiError 401 when there is none, and when it is not the one that the page
 * shows: a browser has one of each kind, and its pages would otherwise mix two (C20.4).
 */
export function sessionNamed(
  cookies: Pick<SessionCookies, 'read'>,
  request: Request,
  { kind, id }: NamedSession,
): Session {
  const session = cookies.read(request, kind);
  if (!session) throw sessionEnded();
  if (id !== null && !idsOf(session).includes(id)) throw new ApiError('session_replaced');
  return session;
}

function idsOf(session: Session): string[] {
  const { companyId } = session;
  return session.kind === 'portal' ? [companyId, session.linkId] : [companyId];
}

/** Checks whether a session of the portal still lasts (docs/contract.md C20.1). One of the dashboard lasts as long as its key. */
export interface PortalSessions {
  /** Throws ApiError 401 when the link of the session was revoked, and when its app was deleted. */
  assertGoesOn: (session: Session) => Promise<void>;
  /** Drops the session of this link from the cache. */
  forget: (linkId: string) => void;
}

export interface PortalSessionsDeps {
  links: Pick<LinkStore, 'isRevoked'>;
  apps: Pick<Apps, 'has'>;
  /** The clock of the process unless given. */
  monotonicMs?: () => number;
}

/** As long as an API key that was revoked by another gateway may still work. */
const TTL_MS = 2_000;
const MAX_CACHED = 10_000;

export function createPortalSessions({
  links,
  apps,
  monotonicMs = monotonicClockMs,
}: PortalSessionsDeps): PortalSessions {
  const cache = new CoalescingCache<{ goesOn: boolean }>({
    maxSize: MAX_CACHED,
    sizeOf: () => 1,
    ttlMs: TTL_MS,
    // Changes of links are not followed, so the time of an entry begins with its read: a link may be revoked during it.
    isFollowed: () => false,
    monotonicMs,
  });
  const load = async ({ companyId, appId, tokenHash }: PortalSession) => ({
    goesOn: !(await links.isRevoked(tokenHash)) && (await apps.has(companyId, appId)),
  });
  return {
    async assertGoesOn(session) {
      if (session.kind === 'company') return;
      const found = await cache.get(session.linkId, () => load(session));
      if (!found?.goesOn) throw sessionEnded();
    },
    forget: (linkId) => {
      cache.forget(linkId);
    },
  };
}
