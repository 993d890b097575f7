import type { mongo } from 'mongoose';
import { SealedValueError, type Vault } from '../../security/vault.ts';
import { collection, type DocumentOf } from '../collections.ts';
import { openWebhook, sealWebhook } from '../webhooks/webhooks.ts';
import { openSigningKey, sealSigningKey } from './signing-keys.ts';

export interface Resealed {
  resealed: number;
  /** Documents still sealed with another key: changed meanwhile, or they do not open. */
  remaining: number;
}

/** Collections whose documents are sealed whole, under one key. */
type SealedName = 'webhooks' | 'signingKeys';

interface Resealing<Name extends SealedName> {
  name: Name;
  /** Opens the document and seals it again. Throws SealedValueError. */
  reseal: (document: DocumentOf[Name]) => Pick<DocumentOf[Name], 'sealed' | 'keyId'>;
  onUnopened: (problem: SealedValueError) => void;
}

interface SealedDocument {
  _id: string;
  sealed: unknown;
  keyId: string;
}

/** Some hundred kB to read and write at once; an interruption repeats at most this many. */
const BATCH = 500;

/**
 * Seals every document of a collection with the vault's current key. May be interrupted and repeated at any time, while
 * services run: a document that was changed since it was read is not overwritten, and counts as `remaining` if it is sealed
 * with another key.
 */
async function resealCollection<Name extends SealedName>(
  db: mongo.Db,
  { currentKeyId }: Pick<Vault, 'currentKeyId'>,
  { name, reseal, onUnopened }: Resealing<Name>,
): Promise<Resealed> {
  // The compiler does not narrow the union of collections.
  const documents = collection(db, name) as unknown as mongo.Collection<SealedDocument>;
  const resealOf = reseal as unknown as (document: SealedDocument) => Partial<SealedDocument>;
  const stale = { keyId: { $ne: currentKeyId } };
  let resealed = 0;
  let lastId: string | undefined = '';
  while (lastId !== undefined) {
    const found = documents.find({ ...stale, _id: { $gt: lastId } }).sort({ _id: 1 });
    const batch = await found.limit(BATCH).toArray();
    const writes = batch.flatMap((document) => resealing(document, resealOf, onUnopened));
    if (writes.length > 0) {
      resealed += (await documents.bulkWrite(writes, { ordered: false })).modifiedCount;
    }
    lastId = batch.at(-1)?._id;
  }
  return { resealed, remaining: await documents.countDocuments(stale) };
}

/** Every write of a document seals it again, so an equal `sealed` means that it was not written meanwhile. */
function resealing(
  document: SealedDocument,
  reseal: (document: SealedDocument) => Partial<SealedDocument>,
  onUnopened: (problem: SealedValueError) => void,
): mongo.AnyBulkWriteOperation<SealedDocument>[] {
  try {
    const { _id, sealed } = document;
    return [{ updateOne: { filter: { _id, sealed }, update: { $set: reseal(document) } } }];
  } catch (problem) {
    if (!(problem instanceof SealedValueError)) throw problem;
    onUnopened(problem);
    return [];
  }
}

/** The number of documents by the id of the key that sealed them. */
export async function countByKey(db: mongo.Db, name: SealedName): Promise<Record<string, number>> {
  const documents = collection(db, name) as unknown as mongo.Collection<SealedDocument>;
  const groups = await documents
    .aggregate<{ _id: string | null; count: number }>([
      { $group: { _id: '$keyId', count: { $sum: 1 } } },
      { $sort: { _id: 1 } },
    ])
    .toArray();
  return Object.fromEntries(groups.map(({ _id, count }) => [_id ?? '(none)', count]));
}

/** Seals every signing key with the vault's current key. */
export function resealSigningKeys(
  db: mongo.Db,
  vault: Vault,
  onUnopened: (problem: SealedValueError) => void,
): Promise<Resealed> {
  return resealCollection(db, vault, {
    name: 'signingKeys',
    reseal(document) {
      const { sealed, keyId } = sealSigningKey(vault, openSigningKey(vault, document));
      return { sealed, keyId };
    },
    onUnopened,
  });
}

/** Seals every webhook with the vault's current key. */
export function resealWebhooks(
  db: mongo.Db,
  vault: Vault,
  onUnopened: (problem: SealedValueError) => void,
): Promise<Resealed> {
  return resealCollection(db, vault, {
    name: 'webhooks',
    reseal(document) {
      const { sealed, keyId } = sealWebhook(vault, openWebhook(vault, document));
      return { sealed, keyId };
    },
    onUnopened,
  });
}
