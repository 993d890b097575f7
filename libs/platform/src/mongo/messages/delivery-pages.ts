/** Where a page of a list of deliveries begins: behind this delivery. */
export interface DeliveryPosition {
  messageId: string;
  deliveryId: string;
}

/** One page of a list of deliveries, in the order of the list. */
export interface DeliveryPage<Found> {
  found: Found[];
  /** How many were read for it, also those that it leaves out. */
  examined: number;
  /** The place up to which everything was read; null when nothing follows. */
  readTo: DeliveryPosition | null;
}

/** `newest_messages`: the newest message first, the greatest id first among its deliveries. The others are by delivery id. */
export type PageOrder = 'newest_messages' | 'newest' | 'oldest';

interface Placed {
  id: string;
  messageId: string;
}

export function positionOf({ id, messageId }: Placed): DeliveryPosition {
  return { messageId, deliveryId: id };
}

/** Returns the page of a read that had this limit: a shorter one ends its list. */
export function pageOfRead<Found extends Placed>(
  found: Found[],
  limit: number,
): DeliveryPage<Found> {
  const last = found.length < limit ? undefined : found.at(-1);
  return { found, examined: found.length, readTo: last ? positionOf(last) : null };
}

/**
 * Merges pages of several lists from the same place on into one of at most `limit` deliveries. It ends where the first of
 * them ends. A delivery that is in two of them comes once, as in the later page.
 */
export function mergePages<Found extends Placed>(
  pages: readonly DeliveryPage<Found>[],
  order: PageOrder,
  limit: number,
): DeliveryPage<Found> {
  const compare = comparisonOf(order);
  const [end = null] = pages.flatMap(({ readTo }) => readTo ?? []).sort(compare);
  const byId = new Map(pages.flatMap(({ found }) => found).map((each) => [each.id, each]));
  const merged = [...byId.values()].sort((a, b) => compare(positionOf(a), positionOf(b)));
  const found = end ? merged.filter((each) => compare(positionOf(each), end) <= 0) : merged;
  const examined = pages.reduce((sum, page) => sum + page.examined, 0);
  if (found.length <= limit) return { found, examined, readTo: end };
  return { ...pageOfRead(found.slice(0, limit), limit), examined };
}

type Comparison = (a: DeliveryPosition, b: DeliveryPosition) => number;

function comparisonOf(order: PageOrder): Comparison {
  switch (order) {
    case 'newest_messages':
      return (a, b) =>
        compareText(b.messageId, a.messageId) || compareText(b.deliveryId, a.deliveryId);
    case 'newest':
      return (a, b) => compareText(b.deliveryId, a.deliveryId);
    case 'oldest':
      return (a, b) => compareText(a.deliveryId, b.deliveryId);
  }
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
