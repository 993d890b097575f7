import type { PortalGrant } from '@posthorn/domain/access.ts';
import type { mongo } from 'mongoose';
import { documentsOf } from '../../company-documents.ts';
import type { LinkDocument } from '../../documents/link-documents.ts';

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
export async function listLiveLinks(
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
export function countLiveLinks(
  db: mongo.Db,
  { companyId, appId, limit }: { companyId: string; appId: string; limit: number },
  nowMs: number,
): Promise<number> {
  return documentsOf(db, 'links', companyId).count(liveAt(nowMs, appId), { limit });
}

function liveAt(nowMs: number, appId: string | null) {
  return {
    isLive: true as const,
    ...(appId !== null && { 'portal.appId': appId }),
    expiresAt: { $gt: new Date(nowMs) },
    // A gateway of the version before leaves the mark.
    revokedAt: { $exists: false },
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
