import type { PortalGrant, PortalTheme } from '@posthorn/domain/access.ts';
import type { mongo } from 'mongoose';
import { hash, randomBytes } from 'node:crypto';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { InvitationGrant, LinkDocument } from '../documents.ts';

/** A link that signs in once (docs/decisions/0043-dashboard-sessions.md). */
export interface Link {
  companyId: string;
  expiresAtMs: number;
  /** Null for the dashboard of the whole company, and for an invitation. */
  portal: PortalGrant | null;
  /** Only of an invitation. */
  invitation?: InvitationGrant;
}

export type LinkKind = LinkDocument['kind'];

/** `unknown`: never made, or its token was changed, or it was removed long after its end. */
export type LinkRefusal = 'unknown' | 'revoked' | 'used' | 'expired';

export type FoundLink = { kind: 'link'; link: Link } | { kind: 'refused'; refusal: LinkRefusal };

/** The links of every company: whoever opens one has nothing but its token. */
export interface LinkStore {
  insert: (token: string, link: Link, createdAtMs: number) => Promise<void>;
  /** Tells whether the link may be used now. */
  find: (kind: LinkKind, token: string, nowMs: number) => Promise<FoundLink>;
  /** Uses it up. Of several that do so at once, one succeeds. */
  use: (kind: LinkKind, token: string, nowMs: number) => Promise<FoundLink>;
  /** The same two with the hash of a token in its place. */
  findByHash: (kind: LinkKind, tokenHash: string, nowMs: number) => Promise<FoundLink>;
  useByHash: (kind: LinkKind, tokenHash: string, nowMs: number) => Promise<FoundLink>;
  /**
   * Ends a link to the portal with the visit that it began. Returns what it gave; null when the company, or the app unless
   * that is null, has no such link that is not revoked.
   */
  revoke: (asked: RevokedLink, nowMs: number) => Promise<PortalGrant | null>;
  /** When a link to the portal expires, in milliseconds since 1970; null when the company has no such link. */
  expiryOf: (companyId: string, linkId: string) => Promise<number | null>;
  /** Whether the link with this hash of a token is revoked, or there is none. */
  isRevoked: (tokenHash: string) => Promise<boolean>;
  /** Returns the links to portals that are neither revoked nor expired, those that last longest first. */
  listLive: (asked: ListedLinks, nowMs: number) => Promise<LiveLink[]>;
  /** Counts those of one app, up to `limit`. */
  countLive: (
    asked: { companyId: string; appId: string; limit: number },
    nowMs: number,
  ) => Promise<number>;
  /** Returns how the portal looks to who opened the link with this hash of a token; null for an unknown one. */
  themeOf: (tokenHash: string) => Promise<PortalTheme | null>;
}

export interface RevokedLink {
  companyId: string;
  linkId: string;
  appId: string | null;
}

const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;

export const newLinkToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

export function createLinkStore(db: mongo.Db): LinkStore {
  const links = collection(db, 'links');

  const findByHash = createFind(links);
  const useByHash = createUse(links, findByHash);
  return {
    async insert(token, link, createdAtMs) {
      await links.insertOne(toDocument(token, link, createdAtMs));
    },
    find: async (kind, token, nowMs) =>
      TOKEN.test(token) ? findByHash(kind, hashOfToken(token), nowMs) : refused('unknown'),
    use: async (kind, token, nowMs) =>
      TOKEN.test(token) ? useByHash(kind, hashOfToken(token), nowMs) : refused('unknown'),
    findByHash,
    useByHash,
    async revoke({ companyId, linkId, appId }, nowMs) {
      const open = {
        'portal.linkId': linkId,
        revokedAt: { $exists: false },
        ...(appId !== null && { 'portal.appId': appId }),
      };
      const update = { $set: { revokedAt: new Date(nowMs) }, $unset: { isLive: true as const } };
      const revoked = await documentsOf(db, 'links', companyId).updateOne(open, update);
      return revoked?.portal ?? null;
    },
    async expiryOf(companyId, linkId) {
      const found = await documentsOf(db, 'links', companyId).findOne({ 'portal.linkId': linkId });
      return found?.expiresAt.getTime() ?? null;
    },
    listLive: (asked, nowMs) => listLiveLinks(db, asked, nowMs),
    countLive: (asked, nowMs) => countLiveLinks(db, asked, nowMs),
    async isRevoked(_id) {
      const found = await links.findOne({ _id });
      return !found || found.revokedAt !== undefined;
    },
    themeOf: async (_id) => (await links.findOne({ _id }))?.portal?.theme ?? null,
  };
}

type UseLink = LinkStore['findByHash'];

function createFind(links: mongo.Collection<LinkDocument>): UseLink {
  return async (kind, _id, nowMs) => {
    const found = await links.findOne({ _id, kind });
    if (!found) return refused('unknown');
    if (found.revokedAt) return refused('revoked');
    if (found.usedAt) return refused('used');
    if (found.expiresAt.getTime() <= nowMs) return refused('expired');
    return { kind: 'link', link: toLink(found) };
  };
}

function createUse(links: mongo.Collection<LinkDocument>, find: UseLink): UseLink {
  return async (kind, _id, nowMs) => {
    const now = new Date(nowMs);
    const unused = {
      _id,
      kind,
      usedAt: { $exists: false },
      revokedAt: { $exists: false },
      expiresAt: { $gt: now },
    };
    const end = kind === 'invitation' ? { $unset: ENDED_INVITATION } : {};
    const used = await links.findOneAndUpdate(unused, { $set: { usedAt: now }, ...end });
    return used ? { kind: 'link', link: toLink(used) } : find(kind, _id, nowMs);
  };
}

/** Links are looked up by the hash of their token, so no comparison takes a time that depends on its bytes. */
export function hashOfToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function toDocument(
  token: string,
  { companyId, expiresAtMs, portal, invitation }: Link,
  createdAtMs: number,
): LinkDocument {
  const kind = portal ? 'portal' : 'signIn';
  return {
    _id: hashOfToken(token),
    companyId,
    kind: invitation ? 'invitation' : kind,
    createdAt: new Date(createdAtMs),
    expiresAt: new Date(expiresAtMs),
    ...(portal && { isLive: true, portal }),
    ...(invitation && { isLive: true, invitation }),
  };
}

const refused = (refusal: LinkRefusal): FoundLink => ({ kind: 'refused', refusal });

function toLink({ companyId, expiresAt, portal, invitation }: LinkDocument): Link {
  const expiresAtMs = expiresAt.getTime();
  return { companyId, expiresAtMs, portal: portal ?? null, ...(invitation && { invitation }) };
}

/** The fields that an invitation loses when it is used or revoked: then nothing names who was invited. */
export const ENDED_INVITATION = {
  isLive: true,
  'invitation.name': '',
  'invitation.email': '',
} as const;

export interface ListedLinks {
  companyId: string;
  /** Null for those of every app. */
  appId: string | null;
  skip: number;
  limit: number;
}

export interface LiveLink {
  createdAtMs: number;
  expiresAtMs: number;
  /** Null until somebody opened it. */
  openedAtMs: number | null;
  portal: Grant;
}

/** A theme has up to 64 KiB, and no list shows it. */
const LISTED = { 'portal.theme': 0 } as const;
type Grant = Omit<PortalGrant, 'theme'>;

/** Returns the links to portals that are neither revoked nor expired, those that last longest first. */
async function listLiveLinks(
  db: mongo.Db,
  { companyId, appId, skip, limit }: ListedLinks,
  nowMs: number,
): Promise<LiveLink[]> {
  const found = documentsOf(db, 'links', companyId)
    .find(liveAt(nowMs, appId))
    .sort({ expiresAt: -1, _id: -1 });
  const page = found.skip(skip).limit(limit).project<ListedDocument>(LISTED);
  return (await page.toArray()).flatMap(toLiveLink);
}

/** Counts those of one app, up to `limit`. */
function countLiveLinks(
  db: mongo.Db,
  { companyId, appId, limit }: { companyId: string; appId: string; limit: number },
  nowMs: number,
): Promise<number> {
  return documentsOf(db, 'links', companyId).count(liveAt(nowMs, appId), { limit });
}

function liveAt(nowMs: number, appId: string | null) {
  return {
    kind: 'portal' as const,
    isLive: true as const,
    ...(appId !== null && { 'portal.appId': appId }),
    expiresAt: { $gt: new Date(nowMs) },
  };
}

type ListedDocument = Omit<LinkDocument, 'portal'> & { portal?: Grant };

function toLiveLink({ createdAt, expiresAt, usedAt, portal }: ListedDocument): LiveLink[] {
  if (!portal) return [];
  const openedAtMs = usedAt?.getTime() ?? null;
  return [
    { createdAtMs: createdAt.getTime(), expiresAtMs: expiresAt.getTime(), openedAtMs, portal },
  ];
}
