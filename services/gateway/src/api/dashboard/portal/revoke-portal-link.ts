import type { PortalGrant } from '@posthorn/domain/access/portal.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { foundOr404 } from '../../../http/api-error.ts';
import type { Caller } from '../../../http/request/route.ts';

export interface RevokePortalLinkDeps {
  links: Pick<LinkStore, 'revoke'>;
  invalidate: Invalidate;
  nowMs: () => number;
}

/** Ends a link with its visit. Throws ApiError 404 for an unknown one, one of another app, and one that was revoked. */
export type RevokePortalLink = (
  caller: Pick<Caller, 'companyId' | 'appId'>,
  linkId: string,
) => Promise<PortalGrant>;

export function createRevokePortalLink(deps: RevokePortalLinkDeps): RevokePortalLink {
  const { links, invalidate, nowMs } = deps;
  return async ({ companyId, appId }, linkId) => {
    const revoked = foundOr404(
      await links.revoke({ companyId, linkId, appId }, nowMs()),
      'portal link',
    );
    await invalidate({ companyId, id: linkId });
    return revoked;
  };
}
