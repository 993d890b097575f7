import type { Request } from 'express';
import type { Authenticate } from '../../../api-keys/authenticate.ts';
import type { Caller } from '../../../http/request/route.ts';
import { readNamedSession, sessionNamed } from './named-session.ts';
import type { SessionCookies } from './session-cookies.ts';
import type { Session } from './session.ts';
import type { Visits } from './visits.ts';

/** Returns whose request it is, by its API key or its session. Throws what `Authenticate` throws. */
export type Identify = (request: Request) => Promise<Caller>;

export interface IdentifyDeps {
  authenticate: Authenticate;
  cookies: Pick<SessionCookies, 'read'>;
  visits: Pick<Visits, 'assertGoesOn'>;
}

export function createIdentify({ authenticate, cookies, visits }: IdentifyDeps): Identify {
  return async (request) => {
    const apiKey = request.get('x-api-key');
    const companyId = request.get('companyid');
    const { ip: address } = request;
    const named = readNamedSession(request);
    if (apiKey !== undefined || named === null) {
      return authenticate({ apiKey, companyId, address });
    }
    const session = sessionNamed(cookies, request, named);
    const key = await authenticate({ keyHash: session.keyHash, companyId, address });
    await visits.assertGoesOn(session);
    // The session names its company, so the client need not.
    request.headers.companyid = key.companyId;
    return callerOf(session, key);
  };
}

/** A visitor is confined to the app of the link, whatever its key may do. */
export function callerOf(session: Session, key: Caller): Caller {
  if (session.kind === 'company') return key;
  const { appId, linkId, capabilities } = session;
  return { ...key, appId, portal: { linkId, capabilities } };
}
