import { ALL_SCOPES } from '@posthorn/domain/access.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import {
  type CompanyStore,
  hashOfKey,
  type KeyRecord,
  makeApiKey,
} from '@posthorn/platform/mongo/companies/companies.ts';
import {
  type FoundLink,
  hashOfToken,
  type Link,
  type LinkKind,
  type LinkRefusal,
  type LinkStore,
} from '@posthorn/platform/mongo/companies/links.ts';
import { ApiError, foundOr404, nullIf404 } from '../api-error.ts';
import type { AuditedRequest, RecordRequest } from '../http/audit-requests.ts';
import type { Authenticate } from '../keys/authenticate.ts';
import { endPortalLink, type EndPortalLinkDeps } from '../keys/portal-links.ts';
import type { PeopleSignIn } from '../people/sign-in.ts';
import type { WrongKeys } from '../limits/rate-limits.ts';
import type { Apps } from '../projects/apps.ts';
import {
  type PortalSession,
  type Session,
  SESSION_MS,
  type SignInSource,
} from '../keys/sessions.ts';

export interface SignInDeps extends EndPortalLinkDeps {
  authenticate: Authenticate;
  links: Pick<LinkStore, 'find' | 'use' | 'revoke'>;
  companies: Pick<CompanyStore, 'insertKey' | 'linkKeyOf' | 'removeLinkKey'>;
  peopleSignIn: Pick<PeopleSignIn, 'out'>;
  /** Whether API keys sign in; OIDC_ONLY. */
  areKeysOff: boolean;
  apps: Pick<Apps, 'has'>;
  recordRequest: RecordRequest;
  wrongKeys: WrongKeys;
  newId: (prefix: IdPrefix) => string;
}

export interface SignedIn {
  session: Session;
  key: KeyRecord;
}

export interface SignIn {
  /** Throws ApiError 401 for a wrong key, and what `Authenticate` throws besides. */
  byKey: (
    credentials: { apiKey: string; companyId: string | undefined },
    source: SignInSource,
  ) => Promise<SignedIn>;
  /** Throws ApiError 404 or 410 for a link that does not open, 429 after too many. */
  byLink: (token: string, source: SignInSource) => Promise<SignedIn>;
  /**
   * Opens the portal of one app; the company is that of the page, null when it names none. Throws as `byLink` does: a
   * link counts as revoked when its key was revoked or its app deleted.
   */
  toPortal: (
    opened: { token: string; companyId: string | null },
    source: SignInSource,
  ) => Promise<SignedIn>;
  /** Throws ApiError as `byLink` does, for an invitation that does not open. */
  checkInvitation: (token: string, source: SignInSource) => Promise<void>;
  /**
   * Ends the link of a portal session, the session of a person, or the key that a sign-in link made. Both are in the audit log, as when a client
   * ends them. The key that a person signed in with stays.
   */
  out: (session: Session, source: SignInSource) => Promise<void>;
}

/** A link that was used or has ended was made once. */
const wasMade = (found: FoundLink): boolean => found.kind === 'link' || found.refusal !== 'unknown';

export function createSignIn(deps: SignInDeps): SignIn {
  const { authenticate, links, wrongKeys, nowMs } = deps;

  async function findLink(kind: LinkKind, token: string, source: SignInSource): Promise<Link> {
    const find = (): Promise<FoundLink> => links.find(kind, token, nowMs());
    const found = await wrongKeys.lookUp(source.address, find, wasMade);
    if (found.kind === 'link') return found.link;
    throw refused(found.refusal, source);
  }
  function refused(refusal: LinkRefusal, { address }: SignInSource): ApiError {
    wrongKeys.count(address);
    return linkRefused(refusal);
  }
  function begin(keyHash: string, key: KeyRecord): SignedIn {
    const endsAtMs = Math.min(nowMs() + SESSION_MS, key.expiresAtMs ?? Infinity);
    const { companyId } = key;
    return { session: { kind: 'company', companyId, keyHash, endsAtMs }, key };
  }

  return {
    async byKey(credentials, source) {
      if (deps.areKeysOff) throw new ApiError('sign_in_by_key_off');
      const { address } = source;
      // `authenticate` says in which header clients of the API send a key.
      const wrongKey = new ApiError('unauthorized', 'This is not a valid API key.');
      const key = await authenticate({ ...credentials, address }).catch(on401(wrongKey));
      const { keyId } = key;
      const asked = askedBy(key, { keyId }, source);
      await deps.recordRequest(SIGNED_IN, asked, () => Promise.resolve({}));
      return begin(hashOfKey(credentials.apiKey), key);
    },
    async byLink(token, source) {
      const { companyId } = await findLink('signIn', token, source);
      const keyHash = await makeSessionKey(deps, { token, companyId }, source);
      return begin(keyHash, await authenticate({ keyHash, address: source.address }));
    },
    async toPortal({ token, companyId }, source) {
      const link = await findLink('portal', token, source);
      if (companyId !== null && companyId !== link.companyId) throw refused('unknown', source);
      return openPortal(deps, token, link, source);
    },
    async checkInvitation(token, source) {
      await findLink('invitation', token, source);
    },
    async out(session, source) {
      if (session.kind === 'portal') await endPortalSession(deps, session, source);
      else if ((await deps.peopleSignIn.out(session, false, source)) === undefined) {
        await endKey(deps, session, source);
      }
    },
  };
}

async function openPortal(
  deps: SignInDeps,
  token: string,
  { companyId, expiresAtMs: endsAtMs, portal }: Link,
  source: SignInSource,
): Promise<SignedIn> {
  if (!portal) throw new ImpossibleError('a link to a portal has a grant');
  const { keyHash, appId, linkId, capabilities } = portal;
  const revoked = on401(linkRefused('revoked'));
  const key = await deps.authenticate({ keyHash, address: source.address }).catch(revoked);
  if (!(await deps.apps.has(companyId, appId))) throw linkRefused('revoked');
  const visitor = { ...key, appId, portal: { linkId, capabilities: [] } };
  const asked = { ...askedBy(visitor, { linkId }, source), fields: { appId } };
  await deps.recordRequest(PORTAL_OPENED, asked, async () => {
    await useLink(deps, 'portal', token);
    return {};
  });
  const opened = { companyId, keyHash, endsAtMs, appId, linkId, capabilities };
  return { session: { kind: 'portal', ...opened, tokenHash: hashOfToken(token) }, key };
}

/** For `catch`: throws this error in place of ApiError 401, and every other error as it is. */
function on401(instead: ApiError): (error: unknown) => never {
  return (error) => {
    throw error instanceof ApiError && error.status === 401 ? instead : error;
  };
}

const SIGNED_IN = {
  method: 'post',
  audit: { action: 'dashboard.signed_in', target: 'apiKey' },
} as const;
const PORTAL_OPENED = {
  method: 'post',
  audit: { action: 'portal.signed_in', target: 'portalLink' },
} as const;
const LINK_ENDED = {
  method: 'delete',
  audit: { action: 'portal_link.revoked', target: 'portalLink' },
} as const;
const KEY_ENDED = {
  method: 'delete',
  audit: { action: 'api_key.revoked', target: 'apiKey' },
} as const;

/** Describes the request for the audit log. */
function askedBy(
  caller: AuditedRequest['caller'],
  params: Record<string, string>,
  { address, requestId }: SignInSource,
): AuditedRequest {
  return { caller, requestId, clientAddress: address ?? null, params, fields: {} };
}

/** The page of a link shows the message. */
const linkRefused = (refusal: LinkRefusal): ApiError => new ApiError(`link_${refusal}`);

async function useLink({ links, nowMs }: SignInDeps, kind: LinkKind, token: string): Promise<void> {
  const used = await links.use(kind, token, nowMs());
  if (used.kind === 'refused') throw linkRefused(used.refusal);
}

/**
 * Uses the link up, and makes the API key of its session, which nobody knows. So the session is listed and revoked
 * as a key, the audit log names who did what, and the key is removed when it expires. Returns the hash of the key.
 */
async function makeSessionKey(
  deps: SignInDeps,
  { token, companyId }: { token: string; companyId: string },
  source: SignInSource,
): Promise<string> {
  const expiresAt = new Date(deps.nowMs() + SESSION_MS);
  const { document } = makeApiKey(deps, companyId, 'Sign-in by link', { expiresAt });
  const { _id: keyId } = document;
  const caller = { companyId, keyId, scopes: ALL_SCOPES, appId: null };
  const asked = { ...askedBy(caller, { keyId }, source), fields: { expiresAt } };
  await deps.recordRequest(SIGNED_IN, asked, async () => {
    await useLink(deps, 'signIn', token);
    await deps.companies.insertKey({ ...document, removeAt: expiresAt });
    return {};
  });
  return document.hash;
}

async function endPortalSession(
  deps: SignInDeps,
  { companyId, linkId, appId, capabilities }: PortalSession,
  source: SignInSource,
): Promise<void> {
  const portal = { linkId, capabilities };
  // The visitor is the actor. The key is not looked up: it may be gone, and signing out must still work.
  const asked = askedBy({ companyId, keyId: '', scopes: [], appId, portal }, { linkId }, source);
  const end = async () => {
    foundOr404(await endPortalLink(deps, { companyId, linkId, appId }), 'portal link');
    return { changed: { before: { appId, capabilities }, after: {} } };
  };
  // ApiError 404: the link was revoked before.
  await deps.recordRequest(LINK_ENDED, asked, end).catch(nullIf404);
}

async function endKey(
  { companies, invalidate, recordRequest }: SignInDeps,
  { companyId, keyHash }: Session,
  source: SignInSource,
): Promise<void> {
  const keyId = await companies.linkKeyOf(keyHash);
  if (keyId === null) return;
  const caller = { companyId, keyId, scopes: ALL_SCOPES, appId: null };
  await recordRequest(KEY_ENDED, askedBy(caller, { keyId }, source), async () => {
    await companies.removeLinkKey(keyHash);
    await invalidate({ companyId, id: keyHash });
    return {};
  });
}
