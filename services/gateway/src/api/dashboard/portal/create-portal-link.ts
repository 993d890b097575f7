import {
  scopesToGive,
  toCapabilities,
  type Capability,
} from '@posthorn/domain/access/capabilities.ts';
import type { PortalTheme } from '@posthorn/domain/access/portal.ts';
import { notGrantable } from '@posthorn/domain/access/scopes.ts';
import type { IdPrefix } from '@posthorn/domain/ids/ids.ts';
import { newLinkToken, type LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { ApiKeys } from '../../../api-keys/api-keys.ts';
import { insufficientScope } from '../../../http/api-error.ts';
import type { Caller } from '../../../http/request/route.ts';
import type { Apps } from '../../../projects/apps.ts';

export interface CreatePortalLinkDeps {
  apps: Pick<Apps, 'get'>;
  apiKeys: Pick<ApiKeys, 'get'>;
  links: Pick<LinkStore, 'insert'>;
  /** PUBLIC_URL. */
  publicUrl: string | undefined;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export interface AskedPortalLink {
  appId: string;
  expiresInSeconds: number;
  capabilities: readonly Capability[];
  theme: PortalTheme;
  /** Below the first page of the portal; '' for that page. */
  path: string;
  /** Where the client reached this gateway, in place of PUBLIC_URL. */
  baseUrl: () => string;
}

export interface CreatedPortalLink {
  id: string;
  url: string;
  expiresAtMs: number;
  capabilities: Capability[];
}

/** Throws ApiError 404 for an unknown app, 403 for a capability that the key of the caller does not have. */
export type CreatePortalLink = (
  caller: Caller,
  asked: AskedPortalLink,
) => Promise<CreatedPortalLink>;

export function createCreatePortalLink(deps: CreatePortalLinkDeps): CreatePortalLink {
  const { apps, apiKeys, links, publicUrl, newId, nowMs } = deps;
  return async (caller, asked) => {
    const { companyId, keyId } = caller;
    const { appId, theme } = asked;
    const capabilities = toCapabilities(asked.capabilities);
    assertGivable(caller, capabilities);
    await apps.get(companyId, appId);
    const { hash: keyHash, expiresAt } = await apiKeys.get(companyId, keyId);
    const createdAtMs = nowMs();
    const askedMs = createdAtMs + asked.expiresInSeconds * 1_000;
    // What a key gives ends with it.
    const expiresAtMs = Math.min(askedMs, expiresAt?.getTime() ?? Infinity);
    const id = newId('plnk');
    const token = newLinkToken();
    const portal = { linkId: id, appId, keyHash, capabilities, theme };
    await links.insert(token, { companyId, expiresAtMs, portal }, createdAtMs);
    const page = `${publicUrl ?? asked.baseUrl()}/dashboard/portal/${companyId}${asked.path}`;
    // Browsers send nobody what is behind the #.
    return { id, url: `${page}#${token}`, expiresAtMs, capabilities };
  };
}

function assertGivable({ scopes }: Caller, capabilities: readonly Capability[]): void {
  const [missing] = notGrantable(scopes, scopesToGive(capabilities));
  if (missing === undefined) return;
  throw insufficientScope(`This API key does not have the scope ${missing}, so it cannot give it.`);
}
