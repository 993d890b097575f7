import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { isDuplicateKey } from '../connect.ts';
import type { CreationKeyDocument } from '../documents.ts';

/** An idempotency key of a request that creates something: it counts for its company, caller and route. */
export interface CreationKey {
  companyId: string;
  /** The only app or portal link that the caller may see; '' for the whole company. */
  within: string;
  /** Method and path without ids. */
  route: string;
  /** The key as the client sent it. */
  key: string;
}

/** The document that a request stores when it claims a key. */
export interface CreationClaim {
  /** Names the request that works with the key. Changes of the claim by any other one have no effect. */
  holder: string;
  /** Of everything that the client sent, sealed, so that another request with the same key is noticed. */
  requestHash: string;
  /** The part after the prefix of every id that the request makes; a repeat makes the same ids. */
  idPart: string;
  /** The seed of its secrets. */
  sealed: string;
}

/** A key that another request has claimed. Times are by the database's clock. */
export interface ClaimedCreation extends Omit<CreationClaim, 'sealed'> {
  /** `interrupted`: the request has failed, and may have created something. */
  status: CreationKeyDocument['status'];
  /** How long ago the key was claimed first. */
  ageMs: number;
  /** How long its holder has had it. */
  heldMs: number;
  /** The size of its document, with the seed or the response. */
  storedBytes: number;
}

/** The idempotency keys of requests that create something (docs/decisions/0012-keys-are-claimed-before-their-message.md). */
export interface CreationKeyStore {
  /**
   * Returns who has the key; null when this request has claimed it, `undecided` when another one is claiming it or has just
   * freed it.
   */
  claim: (key: CreationKey, claim: CreationClaim) => Promise<ClaimedCreation | 'undecided' | null>;
  /** Returns false when the claim is not `from`'s any more. */
  takeOver: (key: CreationKey, from: string, holder: string) => Promise<boolean>;
  /** Stores the response. */
  complete: (key: CreationKey, holder: string, sealed: string) => Promise<void>;
  /** Lets a repeat take over at once. */
  interrupt: (key: CreationKey, holder: string) => Promise<void>;
  /** Ends the claim. */
  free: (key: CreationKey, holder: string) => Promise<void>;
  /** Returns the seed or the response; null when the claim is not the holder's any more. */
  readSealed: (key: CreationKey, holder: string) => Promise<string | null>;
}

/** They are in a collection that expires its documents after two days: creations are too few to need one for each day. */
export function createCreationKeyStore(db: mongo.Db): CreationKeyStore {
  const keys = collection(
    db,
    'idempotencyKeys',
  ) as unknown as mongo.Collection<CreationKeyDocument>;
  const change = async (
    key: CreationKey,
    holder: string,
    set: Partial<Record<keyof CreationKeyDocument, unknown>>,
  ): Promise<boolean> =>
    (await keys.updateOne({ _id: idOf(key), holder }, [{ $set: set }])).modifiedCount === 1;

  return {
    async claim(key, { holder, ...claimed }) {
      const _id = idOf(key);
      const set = { ...literals(claimed), companyId: key.companyId, ...HELD, createdAt: '$$NOW' };
      try {
        // The driver repeats a write whose response it has missed; it then finds the claim of this holder.
        await keys.updateOne({ _id, holder }, [{ $set: set }], { upsert: true });
        return null;
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
      }
      const found = keys.find({ _id }, DECIDED).project<ClaimedCreation>(CLAIMED);
      return (await found.toArray())[0] ?? 'undecided';
    },
    takeOver: (key, from, holder) => change(key, from, { ...literals({ holder }), ...HELD }),
    async complete(key, holder, sealed) {
      await change(key, holder, { ...literals({ sealed }), status: 'done' });
    },
    async interrupt(key, holder) {
      await change(key, holder, { status: 'interrupted' });
    },
    async free(key, holder) {
      await keys.deleteOne({ _id: idOf(key), holder });
    },
    async readSealed(key, holder) {
      const claimed = await keys.findOne({ _id: idOf(key), holder }, DECIDED);
      return claimed?.sealed ?? null;
    },
  };
}

const HELD = { status: 'running', heldAt: '$$NOW' } as const;

/** A rollback must not take back what is decided by these reads. */
const DECIDED = { readConcern: { level: 'majority' } } as const;

const CLAIMED = {
  _id: 0,
  holder: 1,
  requestHash: 1,
  idPart: 1,
  status: 1,
  ageMs: { $subtract: ['$$NOW', '$createdAt'] },
  heldMs: { $subtract: ['$$NOW', '$heldAt'] },
  storedBytes: { $bsonSize: '$$ROOT' },
} as const;

/** The ids of a company's keys begin with it and a slash, as those of messages do. */
const idOf = ({ companyId, within, route, key }: CreationKey): string =>
  [`${companyId}/`, within, route, key].join('\n');

/** In an update with `$$NOW`, a text that begins with `$` would name a field. */
const literals = (fields: Record<string, string>) =>
  Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, { $literal: text }]));
