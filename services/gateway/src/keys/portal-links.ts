import {
  type Capability,
  notGrantable,
  type PortalGrant,
  type PortalTheme,
  scopesToGrant,
  toCapabilities,
} from '@posthorn/domain/access.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import {
  type CompanyStore,
  makeApiKey,
  toKeyRights,
} from '@posthorn/platform/mongo/companies/companies.ts';
import {
  type LinkStore,
  type ListedLinks,
  type LiveLink,
  newLinkToken,
  type RevokedLink,
} from '@posthorn/platform/mongo/companies/links.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { cannotGive, invalidRequest } from '../api-error.ts';
import type { Caller } from './rights.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Quotas } from '../projects/quotas.ts';
import type { Apps } from '../projects/apps.ts';
import type { PortalSettingsStore } from './portal-settings.ts';

interface CreatePortalLinkDeps {
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

interface AskedPortalLink {
  linkId: string;
  appId: string;
  expiresInSeconds: number;
  capabilities: readonly Capability[];
  theme: PortalTheme;
  /** Below the first page of the portal; '' for that page. */
  path: string;
  /** Where the client reached this gateway, in place of PUBLIC_URL. */
  baseUrl: () => string;
}

interface CreatedPortalLink {
  id: string;
  url: string;
  expiresAtMs: number;
  capabilities: Capability[];
}

/**
 * Makes a link to the portal of an app. Throws ApiError 404 for an unknown app, 409 when it has as many links as it may,
 * 403 for a capability that the key of the caller does not have, 400 for a logo that no browser would load.
 */
export async function createPortalLink(
  deps: CreatePortalLinkDeps,
  caller: Caller,
  asked: AskedPortalLink,
): Promise<CreatedPortalLink> {
  const { apps, links, quotas, nowMs } = deps;
  const { companyId } = caller;
  const { appId, theme } = asked;
  const capabilities = toCapabilities(asked.capabilities);
  const [missing] = notGrantable(caller.scopes, scopesToGrant(capabilities));
  if (missing !== undefined) throw cannotGive(missing);
  await apps.get(companyId, appId);
  await assertLoadable(deps, companyId, theme);
  return quotas.createWithin({
    setting: 'portalLinks',
    companyId,
    ownerId: appId,
    count: (limit) => links.countLive({ companyId, appId, limit }, nowMs()),
    create: () => makeLink(deps, caller, { ...asked, capabilities }),
  });
}

async function makeLink(
  deps: CreatePortalLinkDeps,
  caller: Caller,
  asked: AskedPortalLink & { capabilities: Capability[] },
): Promise<CreatedPortalLink> {
  const { links, publicUrl, nowMs } = deps;
  const { companyId } = caller;
  const { linkId, appId, theme, capabilities } = asked;
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
  // Browsers never send the part after the #.
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
 * Returns the key whose revocation ends the link: the caller's, so that revoking a leaked key ends every link made with
 * it. The key of a session that a sign-in link began is removed when the person signs out, so a link made in that session
 * gets its own key.
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
  const rights = toKeyRights({ scopes: scopesToGrant(capabilities), appId, expiresAtMs });
  const made = makeApiKey({ newId, nowMs }, companyId, `Portal link ${linkId}`, rights);
  await companies.insertKey({ ...made.document, removeAt: new Date(expiresAtMs) });
  return { keyHash: made.document.hash, ownsKey: true, endsAtMs: expiresAtMs };
}

export interface EndPortalLinkDeps {
  links: Pick<LinkStore, 'revoke'>;
  companies: Pick<CompanyStore, 'removeLinkKey'>;
  invalidate: Invalidate;
  nowMs: () => number;
}

/**
 * Ends a link with its session and its own key. Returns what the link granted; null for an unknown link, and for one
 * that was revoked.
 */
export async function endPortalLink(
  { links, companies, invalidate, nowMs }: EndPortalLinkDeps,
  ended: RevokedLink,
): Promise<PortalGrant | null> {
  const { companyId, linkId } = ended;
  const grant = await links.revoke(ended, nowMs());
  if (grant?.ownsKey) await companies.removeLinkKey(grant.keyHash);
  await invalidate({ companyId, id: linkId });
  return grant;
}

interface ListPortalLinksDeps {
  apps: Pick<Apps, 'get' | 'existing'>;
  apiKeys: Pick<ApiKeys, 'byHash'>;
  links: Pick<LinkStore, 'listLive'>;
  nowMs: () => number;
}

export interface ListedPortalLink {
  id: string;
  appId: string;
  /** The API key whose revocation ends the link; null when it was revoked, or the app was deleted. */
  apiKeyId: string | null;
  /** `ended`: its API key was revoked or has expired before the link, or its app was deleted. */
  status: 'unopened' | 'opened' | 'ended';
  capabilities: Capability[];
  createdAtMs: number;
  openedAtMs: number | null;
  /** When the link expires, or its API key if that is earlier. */
  expiresAtMs: number;
}

/**
 * Lists the links that may still be used, the one that lasts longest first. Throws ApiError 404 for an unknown app.
 */
export async function listPortalLinks(
  { apps, apiKeys, links, nowMs }: ListPortalLinksDeps,
  asked: ListedLinks,
): Promise<ListedPortalLink[]> {
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

/** Returns the origin of a URL, without the default port of its scheme; null for a text without an origin. */
export function originOf(url: string): string | null {
  const origin = URL.parse(url)?.origin ?? 'null';
  return origin === 'null' ? null : origin;
}

/** True when one of the listed URLs has this origin. */
export function isListed(origin: string, listed: readonly string[]): boolean {
  return listed.some((url) => originOf(url) === origin);
}
