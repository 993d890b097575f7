import {
  scopesToGive,
  toCapabilities,
  type Capability,
} from '@posthorn/domain/access/capabilities.ts';
import type { PortalGrant, PortalTheme } from '@posthorn/domain/access/portal.ts';
import { notGrantable } from '@posthorn/domain/access/scopes.ts';
import type { IdPrefix } from '@posthorn/domain/ids/ids.ts';
import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { makeApiKey, toKeyRights } from '@posthorn/platform/mongo/companies/make-api-key.ts';
import { newLinkToken, type LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { ApiKeys } from '../../../api-keys/api-keys.ts';
import { cannotGive, invalidRequest } from '../../../http/api-error.ts';
import type { Caller } from '../../../http/request/route.ts';
import type { Quotas } from '../../../limits/quotas.ts';
import type { Apps } from '../../../projects/apps.ts';
import { isListed, originOf } from './origin-of.ts';
import type { PortalSettingsStore } from './portal-settings.ts';

export interface CreatePortalLinkDeps {
  apps: Pick<Apps, 'get'>;
  apiKeys: Pick<ApiKeys, 'get'>;
  companies: Pick<CompanyStore, 'insertKey'>;
  links: Pick<LinkStore, 'insert' | 'countLive'>;
  quotas: Quotas;
  portalSettings: Pick<PortalSettingsStore, 'read'>;
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

/**
 * Throws ApiError 404 for an unknown app, 409 when it has as many links as it may, 403 for a capability that the key of
 * the caller does not have, 400 for a logo that no browser would load.
 */
export type CreatePortalLink = (
  caller: Caller,
  asked: AskedPortalLink,
) => Promise<CreatedPortalLink>;

export function createCreatePortalLink(deps: CreatePortalLinkDeps): CreatePortalLink {
  const { apps, links, quotas, nowMs } = deps;
  return async (caller, asked) => {
    const { companyId } = caller;
    const { appId, theme } = asked;
    const capabilities = toCapabilities(asked.capabilities);
    assertGivable(caller, capabilities);
    await apps.get(companyId, appId);
    await assertLoadable(deps, companyId, theme);
    return quotas.createWithin({
      setting: 'portalLinks',
      companyId,
      ownerId: appId,
      count: (limit) => links.countLive({ companyId, appId, limit }, nowMs()),
      create: () => makeLink(deps, caller, { ...asked, capabilities }),
    });
  };
}

async function makeLink(
  deps: CreatePortalLinkDeps,
  caller: Caller,
  asked: AskedPortalLink & { capabilities: Capability[] },
): Promise<CreatedPortalLink> {
  const { links, publicUrl, newId, nowMs } = deps;
  const { companyId } = caller;
  const { appId, theme, capabilities } = asked;
  const linkId = newId('plnk');
  const createdAtMs = nowMs();
  const expiresAtMs = createdAtMs + asked.expiresInSeconds * 1_000;
  const { endsAtMs, ...key } = await keyFor(deps, caller, {
    linkId,
    appId,
    capabilities,
    expiresAtMs,
  });
  const token = newLinkToken();
  const portal = { linkId, appId, ...key, capabilities, theme };
  await links.insert(token, { companyId, expiresAtMs: endsAtMs, portal }, createdAtMs);
  const page = `${publicUrl ?? asked.baseUrl()}/dashboard/portal/${companyId}${asked.path}`;
  // Browsers send nobody what is behind the #.
  return { id: linkId, url: `${page}#${token}`, expiresAtMs: endsAtMs, capabilities };
}

/** Pages of the portal load images from the origins of its settings only (`img-src`), so others would not show. */
async function assertLoadable(
  { portalSettings }: Pick<CreatePortalLinkDeps, 'portalSettings'>,
  companyId: string,
  { logoUrl }: PortalTheme,
): Promise<void> {
  if (logoUrl === undefined || logoUrl.startsWith('data:')) return;
  const { origins } = await portalSettings.read(companyId);
  const origin = originOf(logoUrl);
  if (origin !== null && isListed(origin, origins)) return;
  throw invalidRequest([{ path: 'theme.logoUrl', message: NOT_LOADABLE }]);
}

const NOT_LOADABLE =
  'must be at one of the origins of the portal settings (/api/v1/portal-settings), or a data: URL';

type LinkKey = Pick<PortalGrant, 'keyHash' | 'ownsKey'> & { endsAtMs: number };

/**
 * Returns the key with which the link ends: that of the caller, so that whoever revokes a leaked key ends what was made
 * with it. The key of a session that a sign-in link began goes when the person signs out, so a link of that session
 * gets a key of its own.
 */
async function keyFor(
  { apiKeys, companies, newId, nowMs }: CreatePortalLinkDeps,
  { companyId, keyId }: Caller,
  link: { linkId: string; appId: string; capabilities: Capability[]; expiresAtMs: number },
): Promise<LinkKey> {
  const { linkId, appId, capabilities, expiresAtMs } = link;
  const { hash, expiresAt, removeAt } = await apiKeys.get(companyId, keyId);
  if (!removeAt) {
    const endsAtMs = Math.min(expiresAtMs, expiresAt?.getTime() ?? Infinity);
    return { keyHash: hash, endsAtMs };
  }
  const rights = toKeyRights({ scopes: scopesToGive(capabilities), appId, expiresAtMs });
  const made = makeApiKey({ newId, nowMs }, companyId, `Portal link ${linkId}`, rights);
  await companies.insertKey({ ...made.document, removeAt: new Date(expiresAtMs) });
  return { keyHash: made.document.hash, ownsKey: true, endsAtMs: expiresAtMs };
}

function assertGivable({ scopes }: Caller, capabilities: readonly Capability[]): void {
  const [missing] = notGrantable(scopes, scopesToGive(capabilities));
  if (missing === undefined) return;
  throw cannotGive(missing);
}
