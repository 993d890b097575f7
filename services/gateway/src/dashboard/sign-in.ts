import { ALL_SCOPES } from '@posthorn/domain/access.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
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
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { ApiError, foundOr404 } from '../api-error.ts';
import type { AuditedRequest, RecordRequest } from '../http/audit-requests.ts';
import type { Caller } from '../keys/rights.ts';
import type { Authenticate } from '../keys/authenticate.ts';
import type { WrongKeys } from '../limits/rate-limits.ts';
import type { HasApp } from '../projects/apps.ts';
import type { EndPortalLink } from '../keys/portal-links.ts';
import { type PortalSession, type Session, SESSION_MS } from './sessions.ts';

interface SignInDeps {
  authenticate: Authenticate;
  links: Pick<LinkStore, 'find' | 'use'>;
  companies: Pick<CompanyStore, 'insertKey'>;
  hasApp: HasApp;
  recordRequest: RecordRequest;
  wrongKeys: WrongKeys;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Where a sign-in comes from, for limits and the audit log. */
export interface SignInSource {
  address: string | undefined;
  requestId: string;
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
   * Opens the portal of one app; the company is that of the page, null when it names none. Throws as `byLink` does:
   * with its key, or its app, a link is revoked.
   */
  toPortal: (
    opened: { token: string; companyId: string | null },
    source: SignInSource,
  ) => Promise<SignedIn>;
}

/** One that was used or has ended was made once. */
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
      const { address } = source;
      const key = await authenticate({ ...credentials, address }).catch(asWrongKey);
      const asked = signedInBy(key, source);
      await deps.recordRequest(SIGNED_IN, asked, () => Promise.resolve({}));
      return begin(hashOfKey(credentials.apiKey), key);
    },
    async byLink(token, source) {
      const { companyId } = await findLink('signIn', token, source);
      const keyHash = await makeSessionKey(deps, { token, companyId }, source);
      return begin(keyHash, await authenticate({ keyHash, address: source.address }));
    },
    async toPortal({ token, companyId: asked }, source) {
      const { companyId, expiresAtMs, portal } = await findLink('portal', token, source);
      if (asked !== null && asked !== companyId) throw refused('unknown', source);
      if (!portal) throw new Error('a link to the portal without what it gives');
      const { keyHash, appId, linkId, capabilities } = portal;
      const key = await authenticate({ keyHash, address: source.address }).catch(asRevoked);
      if (!(await deps.hasApp(companyId, appId))) throw linkRefused('revoked');
      await recordVisit(deps, { token, key, linkId, appId }, source);
      const tokenHash = hashOfToken(token);
      const visit = { kind: 'portal' as const, companyId, keyHash, endsAtMs: expiresAtMs };
      return { session: { ...visit, appId, linkId, tokenHash, capabilities }, key };
    },
  };
}

/** `authenticate` tells clients of the API where to send a key. */
function asWrongKey(error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 401) throw error;
  throw new ApiError('unauthorized', 'This is not a valid API key.');
}

/** What a key gave ends with it. */
function asRevoked(error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 401) throw error;
  throw linkRefused('revoked');
}

const SIGNED_IN = {
  method: 'post',
  audit: { action: 'dashboard.signed_in', target: 'apiKey' },
} as const;

/** What the audit log says of who signed in. */
function signedInBy(caller: Caller, { address, requestId }: SignInSource): AuditedRequest {
  const { keyId } = caller;
  return { caller, requestId, clientAddress: address ?? null, params: { keyId }, fields: {} };
}

/**
 * Uses the link up, and makes the API key of its session, which nobody knows. So the session is listed and revoked
 * as a key, the audit log names who did what, and the key goes by itself. Returns the hash of the key.
 */
async function makeSessionKey(
  deps: SignInDeps,
  { token, companyId }: { token: string; companyId: string },
  source: SignInSource,
): Promise<string> {
  const { links, companies, nowMs } = deps;
  const expiresAt = new Date(nowMs() + SESSION_MS);
  const { document } = makeApiKey(deps, companyId, 'Sign-in by link', { expiresAt });
  const { _id: keyId } = document;
  const caller = { companyId, keyId, scopes: ALL_SCOPES, appId: null };
  const asked = { ...signedInBy(caller, source), fields: { expiresAt } };
  await deps.recordRequest(SIGNED_IN, asked, async () => {
    const used = await links.use('signIn', token, nowMs());
    if (used.kind === 'refused') throw linkRefused(used.refusal);
    await companies.insertKey({ ...document, removeAt: expiresAt });
    return {};
  });
  return document.hash;
}

const VISITED = {
  method: 'post',
  audit: { action: 'portal.signed_in', target: 'portalLink' },
} as const;

interface Visit {
  token: string;
  key: KeyRecord;
  linkId: string;
  appId: string;
}

/** Uses the link up. */
async function recordVisit(
  { links, recordRequest, nowMs }: SignInDeps,
  { token, key, linkId, appId }: Visit,
  { address, requestId }: SignInSource,
): Promise<void> {
  const asked = {
    caller: { ...key, appId, portal: { linkId, capabilities: [] } },
    requestId,
    clientAddress: address ?? null,
    params: { linkId },
    fields: { appId },
  };
  await recordRequest(VISITED, asked, async () => {
    const used = await links.use('portal', token, nowMs());
    if (used.kind === 'refused') throw linkRefused(used.refusal);
    return {};
  });
}

interface SignOutDeps {
  companies: Pick<CompanyStore, 'linkKeyOf' | 'removeLinkKey'>;
  endPortalLink: EndPortalLink;
  invalidate: Invalidate;
  recordRequest: RecordRequest;
}

/**
 * Ends what the session was opened with: the link of a visit, and the key that a sign-in link made. Both are in the
 * audit log, as when a client ends them. The key that a person signed in with stays.
 */
export type SignOut = (session: Session, source: SignInSource) => Promise<void>;

const LINK_ENDED = {
  method: 'delete',
  audit: { action: 'portal_link.revoked', target: 'portalLink' },
} as const;

const KEY_ENDED = {
  method: 'delete',
  audit: { action: 'api_key.revoked', target: 'apiKey' },
} as const;

export function createSignOut(deps: SignOutDeps): SignOut {
  return (session, source) =>
    session.kind === 'portal' ? endVisit(deps, session, source) : endKey(deps, session, source);
}

async function endVisit(
  { endPortalLink, recordRequest }: SignOutDeps,
  { companyId, linkId, appId, capabilities }: PortalSession,
  source: SignInSource,
): Promise<void> {
  const portal = { linkId, capabilities };
  // The visitor is the actor. The key is not looked up: it may be gone, and signing out must still work.
  const asked = askedBy({ companyId, keyId: '', scopes: [], appId, portal }, { linkId }, source);
  const end = async () => {
    foundOr404(await endPortalLink({ companyId, linkId, appId }), 'portal link');
    return { changed: { before: { appId, capabilities }, after: {} } };
  };
  await recordRequest(LINK_ENDED, asked, end).catch(ignoreUnknown);
}

async function endKey(
  { companies, invalidate, recordRequest }: SignOutDeps,
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

function askedBy(
  caller: AuditedRequest['caller'],
  params: Record<string, string>,
  { address, requestId }: SignInSource,
): AuditedRequest {
  return { caller, requestId, clientAddress: address ?? null, params, fields: {} };
}

/** The link was revoked before. */
function ignoreUnknown(error: unknown): void {
  if (!(error instanceof ApiError) || error.status !== 404) throw error;
}

/** Why a link does not open: its page shows the text. */
const linkRefused = (refusal: LinkRefusal): ApiError => new ApiError(`link_${refusal}`);
