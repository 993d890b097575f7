import { ALL_SCOPES } from '@posthorn/domain/access/scopes.ts';
import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { ApiError, foundOr404 } from '../../../http/api-error.ts';
import type { AuditedRequest, RecordRequest } from '../../audit/record-request.ts';
import type { EndPortalLink } from '../portal/end-portal-link.ts';
import type { PortalSession, Session } from './session.ts';
import type { SignInSource } from './sign-in.ts';

export interface SignOutDeps {
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
