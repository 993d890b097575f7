import type { Request } from 'express';
import { sessionEnded, type Authenticate } from '../../../api-keys/authenticate.ts';
import type { Caller } from '../../../http/request/route.ts';
import type { SessionCookies } from './session-cookies.ts';
import type { Session } from './session.ts';

/** Returns whose request it is, by its API key or its session. Throws what `Authenticate` throws. */
export type Identify = (request: Request) => Promise<Caller>;

export interface IdentifyDeps {
  authenticate: Authenticate;
  cookies: Pick<SessionCookies, 'read'>;
}

/**
 * No form and no link of another site can set a header, and no script of one without permission that the
 * gateway never gives (docs/contract.md C19.3). Without it a cookie counts for nothing. Its value is `portal` for pages
 * of the portal, whose visitor may be signed in to the dashboard too.
 */
const SESSION_HEADER = 'x-posthorn-session';

export function createIdentify({ authenticate, cookies }: IdentifyDeps): Identify {
  return async (request) => {
    const apiKey = request.get('x-api-key');
    const companyId = request.get('companyid');
    const { ip: address } = request;
    if (apiKey !== undefined || request.get(SESSION_HEADER) === undefined) {
      return authenticate({ apiKey, companyId, address });
    }
    const session = findSession(cookies, request);
    if (!session) throw sessionEnded();
    const key = await authenticate({ keyHash: session.keyHash, companyId, address });
    // The session names its company, so the client need not.
    request.headers.companyid = key.companyId;
    return callerOf(session, key);
  };
}

/** Returns the session of the portal where it is asked for, else that of the dashboard, else that of the portal. */
export function findSession(
  cookies: Pick<SessionCookies, 'read'>,
  request: Request,
): Session | null {
  const isPortal = request.get(SESSION_HEADER) === 'portal';
  return (isPortal ? null : cookies.read(request, 'company')) ?? cookies.read(request, 'portal');
}

/** A visitor is confined to the app of the link, whatever its key may do. */
function callerOf(session: Session, key: Caller): Caller {
  if (session.kind === 'company') return key;
  const { appId, linkId, capabilities } = session;
  return { ...key, appId, portal: { linkId, capabilities } };
}
