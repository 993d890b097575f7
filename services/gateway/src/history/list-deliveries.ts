import { deliveriesOf, type ReadDelivery, type ReadDeps } from './read-delivery.ts';
import { requireMessage } from './read-message.ts';

export interface DeliveriesQuery {
  companyId: string;
  messageId: string;
  limit: number;
  /** The webhook of the last delivery of the page before. */
  cursor?: string | undefined;
}

export interface ListedDeliveries {
  /** Newest webhook first. */
  deliveries: ReadDelivery[];
  nextCursor: string | null;
}

/** Returns one page of the deliveries of a message. Throws ApiError 404 for an unknown message. */
export async function listDeliveries(
  deps: ReadDeps,
  { companyId, messageId, limit, cursor }: DeliveriesQuery,
): Promise<ListedDeliveries> {
  const message = await requireMessage(deps, companyId, messageId);
  const newestFirst = [...message.targets].reverse();
  const rest = newestFirst.filter((id) => cursor === undefined || id < cursor);
  const page = rest.slice(0, limit);
  const deliveries = await deliveriesOf(deps, message, page);
  return { deliveries, nextCursor: rest.length > limit ? (page.at(-1) ?? null) : null };
}
