import type { Capability } from '@posthorn/domain/access/capabilities.ts';
import type { ListedLinks, LiveLink } from '@posthorn/platform/mongo/companies/links/live-links.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import type { ApiKeys } from '../../../api-keys/api-keys.ts';
import type { Apps } from '../../../projects/apps.ts';

export interface ListPortalLinksDeps {
  apps: Pick<Apps, 'get' | 'existing'>;
  apiKeys: Pick<ApiKeys, 'byHash'>;
  links: Pick<LinkStore, 'listLive'>;
  nowMs: () => number;
}

export interface ListedPortalLink {
  id: string;
  appId: string;
  /** With which it ends; null when that was revoked, or the app was deleted. */
  apiKeyId: string | null;
  /** `ended`: its API key was revoked or has expired before the link, or its app was deleted. */
  status: 'unopened' | 'opened' | 'ended';
  capabilities: Capability[];
  createdAtMs: number;
  openedAtMs: number | null;
  /** Of the link, or of its API key when that expires before. */
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
    const keys = await apiKeys.byHash(companyId, distinct(page, 'keyHash'));
    const appIds = await apps.existing(companyId, distinct(page, 'appId'));
    return page.map((link) => {
      const { portal } = link;
      const hasApp = appIds.has(portal.appId);
      return describe(link, hasApp ? (keys.get(portal.keyHash) ?? null) : null, nowMs());
    });
  };
}

function distinct(links: readonly LiveLink[], name: 'keyHash' | 'appId'): string[] {
  return [...new Set(links.map(({ portal }) => portal[name]))];
}

function describe(link: LiveLink, key: ApiKeyDocument | null, nowMs: number): ListedPortalLink {
  const { createdAtMs, openedAtMs, portal } = link;
  const keyEndsAtMs = key?.expiresAt?.getTime() ?? Infinity;
  const isOver = !key || keyEndsAtMs <= nowMs;
  const opened = openedAtMs === null ? 'unopened' : 'opened';
  return {
    id: portal.linkId,
    appId: portal.appId,
    apiKeyId: key?._id ?? null,
    status: isOver ? 'ended' : opened,
    capabilities: portal.capabilities,
    createdAtMs,
    openedAtMs,
    expiresAtMs: Math.min(link.expiresAtMs, keyEndsAtMs),
  };
}
