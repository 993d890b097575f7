import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { MessageDocument } from '../documents.ts';

/**
 * Erases the payloads of those of these messages whose every delivery is delivered. Leaves the others
 * alone, and a message without targets, which is never delivered. May be repeated.
 */
export type EraseDelivered = (messageIds: readonly string[]) => Promise<void>;

type Targets = Pick<MessageDocument, '_id' | 'targets'>;

/** 0.4 MB of the 16 MB that a query may have. */
const MAX_IDS = 10_000;

export function createEraseDelivered(db: mongo.Db): EraseDelivered {
  const messages = collection(db, 'messages');
  return async (messageIds) => {
    const found = await messages
      .find({ _id: { $in: [...messageIds] }, isPayloadErased: { $ne: true } })
      .project<Targets>({ targets: 1 })
      .toArray();
    const delivered = await deliveredAmong(db, found.flatMap(deliveryIdsOf));
    const ids = found
      .filter((message) => message.targets.length > 0)
      .filter((message) => deliveryIdsOf(message).every((id) => delivered.has(id)))
      .map(({ _id }) => _id);
    if (ids.length === 0) return;
    // An empty text and not a missing one: processes of earlier versions read its length.
    const erased = { payload: '', isPayloadErased: true as const };
    await messages.updateMany({ _id: { $in: ids } }, { $set: erased });
  };
}

function deliveryIdsOf({ _id, targets }: Targets): string[] {
  return targets.map((webhookId) => deliveryIdOf(_id, webhookId));
}

/** As a majority has stored it: a payload is not erased for a success that may be rolled back. */
async function deliveredAmong(db: mongo.Db, ids: readonly string[]): Promise<Set<string>> {
  const delivered = new Set<string>();
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const some = { _id: { $in: ids.slice(from, from + MAX_IDS) }, status: 'delivered' as const };
    const found = collection(db, 'deliveries').find(some, { readConcern: { level: 'majority' } });
    const page = await found.project<{ _id: string }>({ _id: 1 }).toArray();
    for (const { _id } of page) delivered.add(_id);
  }
  return delivered;
}
