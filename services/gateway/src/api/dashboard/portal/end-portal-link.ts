import type { PortalGrant } from '@posthorn/domain/access/portal.ts';
import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import type { LinkStore, RevokedLink } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';

export interface EndPortalLinkDeps {
  links: Pick<LinkStore, 'revoke'>;
  companies: Pick<CompanyStore, 'removeLinkKey'>;
  invalidate: Invalidate;
  nowMs: () => number;
}

/**
 * Ends a link with its visit and the key of its own. Returns what it gave; null for an unknown one, and one that was
 * revoked.
 */
export type EndPortalLink = (ended: RevokedLink) => Promise<PortalGrant | null>;

export function createEndPortalLink(deps: EndPortalLinkDeps): EndPortalLink {
  const { links, companies, invalidate, nowMs } = deps;
  return async (ended) => {
    const { companyId, linkId } = ended;
    const grant = await links.revoke(ended, nowMs());
    if (grant?.ownsKey) await companies.removeLinkKey(grant.keyHash);
    await invalidate({ companyId, id: linkId });
    return grant;
  };
}
