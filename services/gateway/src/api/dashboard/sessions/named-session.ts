import type { Request } from 'express';
import { sessionEnded } from '../../../api-keys/authenticate.ts';
import { ApiError } from '../../../http/api-error.ts';
import type { SessionCookies } from './session-cookies.ts';
import type { Session, SessionKind } from './session.ts';

/**
 * No form and no link of another site can set a header, and no script of one without permission that the
 * gateway never gives (docs/contract.md C19.3). Without it a cookie counts for nothing.
 */
const SESSION_HEADER = 'x-posthorn-session';

/** Which session a page means. */
export interface NamedSession {
  kind: SessionKind;
  /** Of what the page shows: the company, or the link of the visit. Null when it does not know yet. */
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
  if (id !== null && !idsOf(session).includes(id)) throw sessionReplaced();
  return session;
}

function idsOf(session: Session): string[] {
  const { companyId } = session;
  return session.kind === 'portal' ? [companyId, session.linkId] : [companyId];
}

const sessionReplaced = (): ApiError =>
  new ApiError(
    401,
    'session_replaced',
    'This browser began another session since, which took the place of this one.',
  );
