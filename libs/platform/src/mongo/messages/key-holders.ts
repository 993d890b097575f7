import { DAY_MS, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { documentsIn } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { readUpTo } from '../days/read-days.ts';
import type { MessageDocument } from '../documents/documents.ts';
import { createIdempotencyKeys, KEY_DAYS } from './idempotency-keys.ts';

/** The message that has an idempotency key, without its payload and first response: both may be large. */
export interface KeyHolder {
  kind: 'holder';
  id: string;
  /** How long ago the key was claimed for it or, when that is not known, how long ago it was made. */
  ageMs: number;
  /** SHA-256 of the body of its request, hex. */
  bodyHash: string;
  /** The size of its document. */
  storedBytes: number;
  /** The message that the key was claimed for; null when it was not, as before days began. */
  claimedFor: string | null;
}

/** A key that was claimed for a message which is not stored, or not by a majority yet. */
export interface ClaimedKey {
  kind: 'claimed';
  claimedFor: string;
  /** How long ago that was. */
  ageMs: number;
}

/** Which messages have the idempotency keys of a company. Ages are by the database's clock. */
export interface KeyHolders {
  /** Finds which majority-committed message has this idempotency key, without reading the message. */
  findKeyHolder: (
    companyId: string,
    idempotencyKey: string,
  ) => Promise<KeyHolder | ClaimedKey | null>;
  /** Makes the key free for another message, unless that has been done since it was found. */
  releaseKey: (
    companyId: string,
    idempotencyKey: string,
    found: KeyHolder | ClaimedKey,
  ) => Promise<void>;
}

/** The first response is repeated from this read: a rollback must not take the message back. */
const DECIDED = { readConcern: { level: 'majority' } } as const;
const HOUR_MS = 3_600_000;
/** As long as a claim is stored. After that, no message from before days began has a key any more. */
const CLAIMED_MS = KEY_DAYS * DAY_MS;

/**
 * A key is claimed in `idempotencyKeys`, and the message that it was claimed for has it too. Of two messages with one
 * key in one collection, the unique index refuses the second. So the first one may have a key that was claimed for the
 * second, when its own claim had ended before it was stored.
 */
export function createKeyHolders(db: Database, nowMs: () => number): KeyHolders {
  const { messages, areDecided } = db.days;
  const keys = createIdempotencyKeys(db);
  const findIn = (
    collections: readonly mongo.Collection<MessageDocument>[],
    companyId: string,
    filter: object,
  ): Promise<KeyHolderDocument[]> =>
    readUpTo(collections, 1, (documents) =>
      documentsIn<'messages'>(documents, companyId)
        .find(filter, DECIDED)
        .project<KeyHolderDocument>(KEY_HOLDER)
        .toArray(),
    );

  return {
    async findKeyHolder(companyId, key) {
      const byKey = { 'idempotency.key': key };
      const claim = areDecided() ? await keys.find(companyId, key) : null;
      if (!claim) {
        const before = messages.beforeSince(nowMs() - CLAIMED_MS);
        const [holder] = before ? await findIn([before], companyId, byKey) : [];
        return holder ? toKeyHolder(holder, null) : null;
      }
      const { messageId: claimedFor, ageMs } = claim;
      const own = { _id: claimedFor, ...byKey };
      const [holder] = await findIn([messages.of(claimedFor)], companyId, own);
      if (holder) return { ...toKeyHolder(holder, claimedFor), ageMs };
      const sinceMs = timeMsOf(claimedFor) - HOUR_MS;
      const around = messages.within({ fromId: firstIdAt('msg', sinceMs) });
      const [other] = await findIn(around, companyId, byKey);
      if (other) return toKeyHolder(other, claimedFor);
      return { kind: 'claimed', claimedFor, ageMs };
    },
    async releaseKey(companyId, key, found) {
      if (found.kind === 'holder') {
        const { id: _id } = found;
        const own = documentsIn<'messages'>(messages.of(_id), companyId);
        await own.updateMany({ _id }, { $unset: { idempotency: '' } });
      }
      if (found.claimedFor !== null) await keys.release(companyId, key, found.claimedFor);
    },
  };
}

interface KeyHolderDocument extends Pick<MessageDocument, '_id'> {
  ageMs: number;
  idempotency: { bodyHash: string };
  storedBytes: number;
}

const KEY_HOLDER = {
  ageMs: { $subtract: ['$$NOW', '$createdAt'] },
  'idempotency.bodyHash': 1,
  storedBytes: { $bsonSize: '$$ROOT' },
} as const;

function toKeyHolder(
  { _id: id, ageMs, idempotency: { bodyHash }, storedBytes }: KeyHolderDocument,
  claimedFor: string | null,
): KeyHolder {
  return { kind: 'holder', id, ageMs, bodyHash, storedBytes, claimedFor };
}
