import { createSignedStatements } from '@posthorn/platform/security/signed-statements.ts';
import type { Request } from 'express';
import { type Authenticate, givenKeyOf } from './authenticate.ts';
import type { Caller } from './rights.ts';
import {
  createPortalSessions,
  createSessionCookies,
  type PortalSessions,
  type PortalSessionsDeps,
  readNamedSession,
  type Session,
  type SessionCookieDeps,
  type SessionCookies,
  sessionNamed,
} from './sessions.ts';

/** Returns who makes a request, by its API key or its session. Throws what `Authenticate` throws. */
export type Identify = (request: Request) => Promise<Caller>;

export interface Identification {
  identify: Identify;
  cookies: SessionCookies;
  portalSessions: PortalSessions;
}

interface Deps extends Omit<SessionCookieDeps, 'statements'>, PortalSessionsDeps {
  authenticate: Authenticate;
  encryptionKeys: Parameters<typeof createSignedStatements>[0];
}

/** Names the use of the key that signs cookies (RFC 5869, `info`). */
const KEY_USE = 'posthorn sessions v1';

/** Creates what identifies callers of the API, the dashboard and the portal. */
export function createIdentification(deps: Deps): Identification {
  const statements = createSignedStatements(deps.encryptionKeys, KEY_USE);
  const cookies = createSessionCookies({ ...deps, statements });
  const portalSessions = createPortalSessions(deps);
  return {
    identify: createIdentify({ ...deps, cookies, portalSessions }),
    cookies,
    portalSessions,
  };
}

interface IdentifyDeps {
  authenticate: Authenticate;
  cookies: Pick<SessionCookies, 'read'>;
  portalSessions: Pick<PortalSessions, 'assertGoesOn'>;
}

export function createIdentify({ authenticate, cookies, portalSessions }: IdentifyDeps): Identify {
  return async (request) => {
    const companyId = request.get('companyid');
    const { ip: address } = request;
    const named = readNamedSession(request);
    // Beside a session only `x-api-key` counts: a proxy that signs people in may send a bearer token of its own.
    if (request.get('x-api-key') !== undefined || named === null) {
      const { apiKey, isBearer } = givenKeyOf(request.headers);
      const key = await authenticate({ apiKey, companyId, address });
      // docs/contract.md C4.7: a bearer of a key need not name its company.
      if (isBearer && companyId === undefined) request.headers.companyid = key.companyId;
      return key;
    }
    const session = sessionNamed(cookies, request, named);
    const key = await authenticate({ keyHash: session.keyHash, companyId, address });
    await portalSessions.assertGoesOn(session);
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
