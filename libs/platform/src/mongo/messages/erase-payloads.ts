import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import type { MessageDocument } from '../documents/documents.ts';

/**
 * Erases the payloads of those of these messages whose every delivery is delivered. Leaves the others
 * alone, and a message without targets, which is never delivered. May be repeated.
 */
export type EraseDelivered = (messageIds: readonly string[]) => Promise<void>;

type Targets = Pick<MessageDocument, '_id' | 'targets'>;

/** 0.4 MB of the 16 MB that a query may have. */
const MAX_IDS = 10_000;

export function createEraseDelivered({
  days: { messages, deliveries },
}: Pick<Database, 'days'>): EraseDelivered {
  return async (messageIds) => {
    const found = await readByIds(messages, messageIds, (documents, ofDay) =>
      documents
        .find({ _id: { $in: ofDay }, isPayloadErased: { $ne: true } })
        .project<Targets>({ targets: 1 })
        .toArray(),
    );
    const delivered = await deliveredAmong(deliveries, found.flatMap(deliveryIdsOf));
    const ids = found
      .filter((message) => message.targets.length > 0)
      .filter((message) => deliveryIdsOf(message).every((id) => delivered.has(id)))
      .map(({ _id }) => _id);
    // An empty text and not a missing one: processes of earlier versions read its length.
    const erased = { payload: '', isPayloadErased: true as const };
    const idOf = (id: string): string => id;
    await writeByDays(messages, ids, idOf, (documents, ofDay) =>
      documents.updateMany({ _id: { $in: [...ofDay] } }, { $set: erased }),
    );
  };
}

function deliveryIdsOf({ _id, targets }: Targets): string[] {
  return targets.map((webhookId) => deliveryIdOf(_id, webhookId));
}

/** As a majority has stored it: a payload is not erased for a success that may be rolled back. */
async function deliveredAmong(
  deliveries: Days['deliveries'],
  ids: readonly string[],
): Promise<Set<string>> {
  const delivered = new Set<string>();
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const some = ids.slice(from, from + MAX_IDS);
    const page = await readByIds(deliveries, some, (documents, ofDay) =>
      documents
        .find({ _id: { $in: ofDay }, status: 'delivered' }, { readConcern: { level: 'majority' } })
        .project<{ _id: string }>({ _id: 1 })
        .toArray(),
    );
    for (const { _id } of page) delivered.add(_id);
  }
  return delivered;
}
