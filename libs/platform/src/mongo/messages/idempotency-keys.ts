import { firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsIn } from '../company-documents.ts';
import { asStoreError, DUPLICATE_KEY } from '../connect.ts';
import type { Database } from '../days/days.ts';
import { readUpTo } from '../days/read-days.ts';
import type { IdempotencyKeyDocument, MessageDocument } from '../documents.ts';

/** Which message has claimed an idempotency key, and how long ago. The message may not be stored. */
interface KeyClaim extends Pick<IdempotencyKeyDocument, 'messageId'> {
  ageMs: number;
}

/**
 * The idempotency keys of all days. Each is claimed for a message before that is stored. Their times are those of the
 * database's clock: gateways whose clocks differ must agree about the age of a claim.
 */
interface IdempotencyKeys {
  /** Claims the keys of these messages in one majority write. Returns those whose key another message has. */
  claim: (keyed: readonly Message[]) => Promise<Set<Message>>;
  /** As a majority has stored it. */
  find: (companyId: string, key: string) => Promise<KeyClaim | null>;
  /** Ends the claim of this message; does nothing when it has none. */
  release: (companyId: string, key: string, messageId: string) => Promise<void>;
}

/**
 * For how many days MongoDB keeps a claim. Gateways count the 24 hours of the promise; the rest is for a primary whose
 * clock is ahead of that of the one before.
 */
export const KEY_DAYS = 2;

/** The id of no company has a slash in it. */
const keyIdOf = (companyId: string, key: string): string => `${companyId}/${key}`;

/** All keys of a company, as a range of ids that needs no index of its own: `0` follows `/`. */
export const keysOf = (companyId: string) => ({ $gt: `${companyId}/`, $lt: `${companyId}0` });

export function createIdempotencyKeys(db: mongo.Db): IdempotencyKeys {
  const keys = collection(db, 'idempotencyKeys');
  return {
    async claim(keyed) {
      const claims = keyed.flatMap(claimOf);
      if (claims.length === 0) return new Set();
      try {
        await keys.bulkWrite(claims, { ordered: false });
        return new Set();
      } catch (error) {
        return takenAmong(error, keyed);
      }
    },
    find: (companyId, key) =>
      keys.findOne<KeyClaim>(
        { _id: keyIdOf(companyId, key) },
        { projection: CLAIM, readConcern: { level: 'majority' } },
      ),
    async release(companyId, key, messageId) {
      await keys.deleteOne({ _id: keyIdOf(companyId, key), messageId });
    },
  };
}

const CLAIM = { _id: 0, messageId: 1, ageMs: { $subtract: ['$$NOW', '$createdAt'] } } as const;

/** MongoDB refuses it as a second document of the same key when another message has claimed that. */
function claimOf({
  id: messageId,
  companyId,
  idempotency,
}: Message): mongo.AnyBulkWriteOperation<IdempotencyKeyDocument>[] {
  if (!idempotency) return [];
  const _id = keyIdOf(companyId, idempotency.key);
  const claim = { $set: { companyId, createdAt: '$$NOW' } };
  return [{ updateOne: { filter: { _id, messageId }, update: [claim], upsert: true } }];
}

/** Rethrows the error unless the server has answered for every key. */
function takenAmong(error: unknown, keyed: readonly Message[]): Set<Message> {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
  const { writeErrors, result } = error;
  const list = [writeErrors].flat();
  // The driver throws the same error with an empty list when the server did not respond.
  const isAnswered = list.length > 0 && !result.getWriteConcernError();
  if (!isAnswered || list.some(({ code }) => code !== DUPLICATE_KEY)) throw error;
  const taken = new Set(list.map(({ index }) => index));
  return new Set(keyed.filter((_, index) => taken.has(index)));
}

/**
 * Claims the keys of the messages of a batch that have one. Returns those that must not be stored. `repeated`: another
 * message has the key. `refused`: it is not certain whether this one has it.
 */
type ClaimKeys = (
  batch: readonly Message[],
) => Promise<ReadonlyMap<Message, 'repeated' | 'refused'>>;

interface ClaimKeysDeps {
  keys: Pick<IdempotencyKeys, 'claim'>;
  monotonicMs: () => number;
}

const NONE: Awaited<ReturnType<ClaimKeys>> = new Map();

/**
 * A claim whose message is not stored counts for two minutes. A claim takes 25 s at most, and so does the write of the
 * message; the rest is for a new primary whose clock differs.
 */
export const CLAIM_LASTS_MS = 120_000;
/** Later than that, this process was suspended meanwhile, and the claim may be over. */
const CLAIM_WITHIN_MS = 30_000;

export function createClaimKeys({ keys, monotonicMs }: ClaimKeysDeps): ClaimKeys {
  return async (batch) => {
    const keyed = batch.filter(({ idempotency }) => idempotency !== null);
    if (keyed.length === 0) return NONE;
    const refused = new Map(keyed.map((message) => [message, 'refused' as const]));
    const beganMs = monotonicMs();
    try {
      const taken = await keys.claim(keyed);
      if (monotonicMs() - beganMs > CLAIM_WITHIN_MS) return refused;
      return new Map([...taken].map((message) => [message, 'repeated']));
    } catch (error) {
      const isUnanswered =
        error instanceof mongoose.mongo.MongoBulkWriteError || asStoreError(error) !== error;
      if (!isUnanswered) throw error;
      return refused;
    }
  };
}

/** The message that has an idempotency key, without its payload and first response: both may be large. */
export interface KeyHolder {
  kind: 'holder';
  id: string;
  /** How long ago the key was claimed for it or, when it was claimed for another message, how long ago it was made. */
  ageMs: number;
  /** SHA-256 of the body of its request, hex. */
  bodyHash: string;
  /** The size of its document. */
  storedBytes: number;
  /** The message that the key was claimed for. */
  claimedFor: string;
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

/**
 * A key is claimed in `idempotencyKeys`, and the message that it was claimed for has it too. Of two messages with one
 * key in one collection, the unique index refuses the second. So the first one may have a key that was claimed for the
 * second, when its own claim had ended before it was stored.
 */
export function createKeyHolders(db: Database): KeyHolders {
  const { messages } = db.days;
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
      const claim = await keys.find(companyId, key);
      if (!claim) return null;
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
      await keys.release(companyId, key, found.claimedFor);
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
  claimedFor: string,
): KeyHolder {
  return { kind: 'holder', id, ageMs, bodyHash, storedBytes, claimedFor };
}
