import type { Message } from '@posthorn/domain/message.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import type { IdempotencyKeyDocument } from '../documents/documents.ts';
import { DUPLICATE_KEY } from '../connection/duplicate-key.ts';

/** Which message has claimed an idempotency key, and how long ago. The message may not be stored. */
export interface KeyClaim extends Pick<IdempotencyKeyDocument, 'messageId'> {
  ageMs: number;
}

/**
 * The idempotency keys of all days. Each is claimed for a message before that is stored. Their times are those of the
 * database's clock: gateways whose clocks differ must agree about the age of a claim.
 */
export interface IdempotencyKeys {
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
export const keyIdOf = (companyId: string, key: string): string => `${companyId}/${key}`;

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
