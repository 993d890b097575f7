import type { Capability } from '@posthorn/domain/access/capabilities.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { ListedLinks, LiveLink } from '@posthorn/platform/mongo/companies/links/live-links.ts';
import type { ApiKeys } from '../../../api-keys/api-keys.ts';
import type { Apps } from '../../../projects/apps.ts';

export interface ListPortalLinksDeps {
  apps: Pick<Apps, 'get'>;
  apiKeys: Pick<ApiKeys, 'endsOf'>;
  links: Pick<LinkStore, 'listLive'>;
  nowMs: () => number;
}

export interface ListedPortalLink {
  id: string;
  appId: string;
  /** `ended`: its API key was revoked or has expired before the link. */
  status: 'unopened' | 'opened' | 'ended';
  capabilities: Capability[];
  createdAtMs: number;
  openedAtMs: number | null;
  /** Not later than its API key expires. */
  expiresAtMs: number;
}

/**
 * Those that last longest first, without those that were revoked or have expired. Throws ApiError 404 for an unknown
 * app.
 */
export type ListPortalLinks = (asked: ListedLinks) => Promise<ListedPortalLink[]>;

export function createListPortalLinks(deps: ListPortalLinksDeps): ListPortalLinks {
  const { apps, apiKeys, links, nowMs } = deps;
  return async (asked) => {
    const { companyId, appId } = asked;
    if (appId !== null) await apps.get(companyId, appId);
    const page = await links.listLive(asked, nowMs());
    const hashes = new Set(page.map(({ portal }) => portal.keyHash));
    const keyEndsAtMs = await apiKeys.endsOf(companyId, [...hashes]);
    return page.map((link) => describe(link, keyEndsAtMs.get(link.portal.keyHash), nowMs()));
  };
}

function describe(link: LiveLink, keyEndsAtMs = 0, nowMs: number): ListedPortalLink {
  const { createdAtMs, openedAtMs, portal } = link;
  const opened = openedAtMs === null ? 'unopened' : 'opened';
  return {
    id: portal.linkId,
    appId: portal.appId,
    status: keyEndsAtMs <= nowMs ? 'ended' : opened,
    capabilities: portal.capabilities,
    createdAtMs,
    openedAtMs,
    expiresAtMs: keyEndsAtMs === 0 ? link.expiresAtMs : Math.min(link.expiresAtMs, keyEndsAtMs),
  };
}
