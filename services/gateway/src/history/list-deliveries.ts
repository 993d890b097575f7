import type { Message } from '@posthorn/domain/message/message.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import { deliveriesOf, type ReadDelivery, type ReadStores } from './read-delivery.ts';
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

/**
 * A page ends when its attempts have so many characters. One delivery has at most 200 attempts with 4 KiB
 * of response and 8 KiB of headers: 2.4 MB.
 */
const MAX_PAGE_CHARS = 1_048_576;
/** Deliveries that are read at once. */
const PART = 5;

/** Returns one page of the deliveries of a message. Throws ApiError 404 for an unknown message. */
export async function listDeliveries(
  deps: ReadStores,
  { companyId, messageId, limit, cursor }: DeliveriesQuery,
): Promise<ListedDeliveries> {
  const message = await requireMessage(deps, companyId, messageId);
  const newestFirst = [...message.targets].reverse();
  const rest = newestFirst.filter((id) => cursor === undefined || id < cursor);
  const deliveries = await readPage(deps, message, rest.slice(0, limit));
  const lastId = deliveries.at(-1)?.source.webhookId ?? null;
  return { deliveries, nextCursor: rest.length > deliveries.length ? lastId : null };
}

async function readPage(
  deps: ReadStores,
  message: Message,
  webhookIds: readonly string[],
): Promise<ReadDelivery[]> {
  const page: ReadDelivery[] = [];
  let chars = 0;
  for (let from = 0; from < webhookIds.length; from += PART) {
    for (const each of await deliveriesOf(deps, message, webhookIds.slice(from, from + PART))) {
      page.push(each);
      chars += charsOf(each);
      if (chars >= MAX_PAGE_CHARS) return page;
    }
  }
  return page;
}

/** Returns about how many characters the attempts of a delivery have in a response. */
function charsOf({ source, sentHeaders }: ReadDelivery): number {
  const sent = charsOfHeaders(sentHeaders.headers);
  return source.attempts.reduce(
    (sum, { response, responseHeaders }) =>
      sum + sent + (response?.length ?? 0) + charsOfHeaders(responseHeaders),
    0,
  );
}

function charsOfHeaders(headers: readonly Header[]): number {
  return headers.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}
