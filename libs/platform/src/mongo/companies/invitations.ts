import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';
import type { InvitationGrant, LinkDocument } from '../documents.ts';
import { ENDED_INVITATION } from './links.ts';

/** An invitation that nobody has used. */
export interface OpenInvitation {
  invitation: InvitationGrant;
  createdAtMs: number;
  expiresAtMs: number;
}

/** The invitations of a company. They are links (links.ts), which make, find and use them. */
export interface InvitationStore {
  /** Those that may be used, the one that lasts longest first. */
  listOpen: (
    companyId: string,
    page: { skip: number; limit: number },
    nowMs: number,
  ) => Promise<OpenInvitation[]>;
  /** Counts those that may be used, up to `limit`. */
  countOpen: (companyId: string, limit: number, nowMs: number) => Promise<number>;
  /** When it expires, in milliseconds since 1970; null when the company has no such invitation. */
  expiryOf: (companyId: string, id: string) => Promise<number | null>;
  /** Returns what it granted; null when the company has no such open invitation. */
  revoke: (companyId: string, id: string, nowMs: number) => Promise<InvitationGrant | null>;
}

export function createInvitationStore(db: mongo.Db): InvitationStore {
  const linksOf = (companyId: string) => documentsOf(db, 'links', companyId);
  return {
    async listOpen(companyId, { skip, limit }, nowMs) {
      const found = linksOf(companyId).find(openAt(nowMs)).sort({ expiresAt: -1, _id: -1 });
      return (await found.skip(skip).limit(limit).toArray()).flatMap(toOpenInvitation);
    },
    countOpen: (companyId, limit, nowMs) => linksOf(companyId).count(openAt(nowMs), { limit }),
    async expiryOf(companyId, id) {
      const found = await linksOf(companyId).findOne({ 'invitation.id': id });
      return found?.expiresAt.getTime() ?? null;
    },
    async revoke(companyId, id, nowMs) {
      const open = { 'invitation.id': id, ...openAt(nowMs) };
      const update = { $set: { revokedAt: new Date(nowMs) }, $unset: ENDED_INVITATION };
      return (await linksOf(companyId).updateOne(open, update))?.invitation ?? null;
    },
  };
}

const openAt = (nowMs: number) => ({
  kind: 'invitation' as const,
  isLive: true as const,
  expiresAt: { $gt: new Date(nowMs) },
});

function toOpenInvitation({ createdAt, expiresAt, invitation }: LinkDocument): OpenInvitation[] {
  if (!invitation) return [];
  const createdAtMs = createdAt.getTime();
  return [{ invitation, createdAtMs, expiresAtMs: expiresAt.getTime() }];
}
