import type { mongo } from 'mongoose';
import { SealedValueError, type Vault } from '../../vault/vault.ts';
import { collection } from '../collections.ts';
import type { WebhookDocument } from '../documents.ts';
import { openWebhook, sealWebhook } from './webhooks-sealed.ts';

export interface Resealed {
  resealed: number;
  /** Webhooks that are still sealed with another key: they were changed meanwhile or cannot be opened. */
  remaining: number;
}

/** Some hundred kB to read and write at once; an interruption repeats at most this many. */
const BATCH = 500;

/**
 * Seals every webhook with the vault's current key. May be interrupted and repeated at any time, while
 * services run: a webhook that was changed since it was read is not overwritten, and counts as
 * `remaining` if it is sealed with another key.
 */
export async function resealWebhooks(
  db: mongo.Db,
  vault: Vault,
  onUnopened: (problem: SealedValueError) => void,
): Promise<Resealed> {
  const webhooks = collection(db, 'webhooks');
  const stale = { keyId: { $ne: vault.currentKeyId } };
  let resealed = 0;
  let lastId: string | undefined = '';
  while (lastId !== undefined) {
    const found = webhooks.find({ ...stale, _id: { $gt: lastId } }).sort({ _id: 1 });
    const batch = await found.limit(BATCH).toArray();
    const writes = batch.flatMap((document) => resealing(vault, document, onUnopened));
    if (writes.length > 0) {
      resealed += (await webhooks.bulkWrite(writes, { ordered: false })).modifiedCount;
    }
    lastId = batch.at(-1)?._id;
  }
  return { resealed, remaining: await webhooks.countDocuments(stale) };
}

/** Every write of a webhook seals it again, so an equal `sealed` means that it was not written meanwhile. */
function resealing(
  vault: Vault,
  document: WebhookDocument,
  onUnopened: (problem: SealedValueError) => void,
): mongo.AnyBulkWriteOperation<WebhookDocument>[] {
  try {
    const { sealed, keyId } = sealWebhook(vault, openWebhook(vault, document));
    const filter = { _id: document._id, sealed: document.sealed };
    return [{ updateOne: { filter, update: { $set: { sealed, keyId } } } }];
  } catch (problem) {
    if (!(problem instanceof SealedValueError)) throw problem;
    onUnopened(problem);
    return [];
  }
}

/** The number of webhooks by the id of the key that sealed them. */
export async function countByKey(db: mongo.Db): Promise<Record<string, number>> {
  const groups = await collection(db, 'webhooks')
    .aggregate<{ _id: string | null; count: number }>([
      { $group: { _id: '$keyId', count: { $sum: 1 } } },
      { $sort: { _id: 1 } },
    ])
    .toArray();
  return Object.fromEntries(groups.map(({ _id, count }) => [_id ?? '(none)', count]));
}
