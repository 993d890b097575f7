import type { Request } from 'express';
import { sessionEnded, type Authenticate } from '../../../api-keys/authenticate.ts';
import type { Caller } from '../../../http/request/route.ts';
import type { SessionCookies } from './session-cookies.ts';

/** Returns whose request it is, by its API key or its session. Throws what `Authenticate` throws. */
export type Identify = (request: Request) => Promise<Caller>;

export interface IdentifyDeps {
  authenticate: Authenticate;
  cookies: Pick<SessionCookies, 'read'>;
}

/**
 * No form and no link of another site can set a header, and no script of one without permission that the
 * gateway never gives (docs/contract.md C19.3). Without it a cookie counts for nothing.
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
    const session = cookies.read(request);
    if (!session) throw sessionEnded();
    const caller = await authenticate({ keyHash: session.keyHash, companyId, address });
    // The session names its company, so the client need not.
    request.headers.companyid = caller.companyId;
    return caller;
  };
}
