import {
  type Capability,
  notGrantable,
  type PortalGrant,
  type PortalTheme,
  scopesToGive,
  toCapabilities,
} from '@posthorn/domain/access.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import {
  type CompanyStore,
  createCompanyStore,
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
import type { mongo } from 'mongoose';
import { cannotGive, invalidRequest } from '../api-error.ts';
import type { Caller } from './rights.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Quotas } from '../projects/quotas.ts';
import type { Apps } from '../projects/apps.ts';
import type { PortalSettingsStore } from './portal-settings.ts';

/** What the routes of the portal call. */
interface PortalUseCases {
  createPortalLink: CreatePortalLink;
  listPortalLinks: ListPortalLinks;
  endPortalLink: EndPortalLink;
  portalSettings: PortalSettingsStore;
}

type PortalUseCaseDeps = Pick<PortalUseCases, 'portalSettings'> &
  Pick<EndPortalLinkDeps, 'invalidate'> &
  Pick<CreatePortalLinkDeps, 'quotas' | 'publicUrl' | 'newId' | 'nowMs'> & {
    db: mongo.Db;
    links: Pick<LinkStore, 'insert' | 'countLive' | 'revoke' | 'listLive'>;
  };

type Neighbours = Pick<CreatePortalLinkDeps, 'apps' | 'apiKeys'> &
  Pick<ListPortalLinksDeps, 'apps' | 'apiKeys'>;

export function portalUseCases(
  deps: PortalUseCaseDeps,
  { apps, apiKeys }: Neighbours,
): PortalUseCases {
  const companies = createCompanyStore(deps.db);
  return {
    createPortalLink: createCreatePortalLink({ ...deps, apps, apiKeys, companies }),
    listPortalLinks: createListPortalLinks({ ...deps, apps, apiKeys }),
    endPortalLink: createEndPortalLink({ ...deps, companies }),
    portalSettings: deps.portalSettings,
  };
}

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
 * Throws ApiError 404 for an unknown app, 409 when it has as many links as it may, 403 for a capability that the key of
 * the caller does not have, 400 for a logo that no browser would load.
 */
export type CreatePortalLink = (
  caller: Caller,
  asked: AskedPortalLink,
) => Promise<CreatedPortalLink>;

function createCreatePortalLink(deps: CreatePortalLinkDeps): CreatePortalLink {
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

interface EndPortalLinkDeps {
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

interface ListPortalLinksDeps {
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

function createListPortalLinks(deps: ListPortalLinksDeps): ListPortalLinks {
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

/**
 * Returns the origin of a URL, without the port that its scheme has anyway. Null for what has none, such as a text that
 * is no URL, or one of a port that an earlier version allowed.
 */
export function originOf(url: string): string | null {
  const origin = URL.parse(url)?.origin ?? 'null';
  return origin === 'null' ? null : origin;
}

/** True when one of the listed URLs has this origin. */
export function isListed(origin: string, listed: readonly string[]): boolean {
  return listed.some((url) => originOf(url) === origin);
}
