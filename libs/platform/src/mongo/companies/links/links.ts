import { hash, randomBytes } from 'node:crypto';
import type { mongo } from 'mongoose';
import { collection } from '../../collections.ts';
import type { LinkDocument } from '../../link-documents.ts';

/** A link that signs in once (docs/decisions/0043-dashboard-sessions.md). */
export interface Link {
  companyId: string;
  kind: LinkDocument['kind'];
  expiresAtMs: number;
}

/** `unknown`: never made, or its token was changed, or it was removed long after its end. */
export type LinkRefusal = 'unknown' | 'used' | 'expired';

export type FoundLink = { link: Link } | { refusal: LinkRefusal };

/** The links of every company: whoever opens one has nothing but its token. */
export interface LinkStore {
  insert: (token: string, link: Link, createdAtMs: number) => Promise<void>;
  /** Tells whether the link may be used now. */
  find: (kind: Link['kind'], token: string, nowMs: number) => Promise<FoundLink>;
  /** Uses it up. Of several that do so at once, one succeeds. */
  use: (kind: Link['kind'], token: string, nowMs: number) => Promise<FoundLink>;
}

const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;

export const newLinkToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

export function createLinkStore(db: mongo.Db): LinkStore {
  const links = collection(db, 'links');

  async function find(kind: Link['kind'], token: string, nowMs: number): Promise<FoundLink> {
    const found = TOKEN.test(token) ? await links.findOne({ _id: idOf(token), kind }) : null;
    if (!found) return { refusal: 'unknown' };
    if (found.usedAt) return { refusal: 'used' };
    return found.expiresAt.getTime() <= nowMs ? { refusal: 'expired' } : { link: toLink(found) };
  }

  return {
    async insert(token, { expiresAtMs, ...link }, createdAtMs) {
      const times = { createdAt: new Date(createdAtMs), expiresAt: new Date(expiresAtMs) };
      await links.insertOne({ _id: idOf(token), ...link, ...times });
    },
    find,
    async use(kind, token, nowMs) {
      const now = new Date(nowMs);
      const unused = {
        _id: idOf(token),
        kind,
        usedAt: { $exists: false },
        expiresAt: { $gt: now },
      };
      const used = await links.findOneAndUpdate(unused, { $set: { usedAt: now } });
      return used ? { link: toLink(used) } : find(kind, token, nowMs);
    },
  };
}

/** Links are looked up by the hash of their token, so no comparison takes a time that depends on its bytes. */
function idOf(token: string): string {
  return hash('sha256', token, 'hex');
}

function toLink({ companyId, kind, expiresAt }: LinkDocument): Link {
  return { companyId, kind, expiresAtMs: expiresAt.getTime() };
}
