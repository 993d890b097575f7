import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import type { Days } from '../days/days.ts';
import { readUpTo } from '../days/read-days.ts';
import type { MessageDocument } from '../documents/documents.ts';
import { toMessage } from './message-documents.ts';

export interface Page {
  publisherId: string;
  /** Exclusive; '' for the first page. */
  afterId: string;
  limit: number;
}

export interface BoundedPage extends Page {
  /** How many messages, of all publishers, the page may read at most. */
  maxRead: number;
}

/** `readTo` is the id where the next page begins; null when there is nothing behind this one. */
export interface PageInBounds {
  messages: Message[];
  readTo: string | null;
}

type Messages = mongo.Collection<MessageDocument>;

/** For reads that decide what is published: a rollback must not take such a message back. */
export const COMMITTED = { readConcern: { level: 'majority' } } as const;

/**
 * Reads the messages of one publisher, one day after the other. A publisher stores the older day of a batch that
 * crosses midnight first, so a day is complete when the next one has a message. It may not have been when it was
 * read, and is read again then: what is missing before a published message would never be published.
 */
export async function readPage(days: Days['messages'], page: Page): Promise<Message[]> {
  const { afterId, limit } = page;
  let found: Message[] = [];
  let previous: Messages | null = null;
  for (const messages of days.within({ fromId: afterId })) {
    const rest = { ...page, afterId: found.at(-1)?.id ?? afterId, limit: limit - found.length };
    const later = await read(messages, rest);
    const late = previous && later.length > 0 ? await read(previous, rest) : [];
    found = [...found, ...late, ...later].slice(0, limit);
    if (found.length === limit) break;
    previous = messages;
  }
  return found;
}

/** Like `readPage`; a page ends with the first day that has messages of the publisher or reaches `maxRead`. */
export async function readBoundedPage(
  days: Days['messages'],
  page: BoundedPage,
): Promise<PageInBounds> {
  const all = days.within({ fromId: page.afterId });
  for (const [index, messages] of all.entries()) {
    const found = await readBounded(messages, page);
    const last = found.messages.at(-1);
    if (last === undefined && found.readTo === null) continue;
    const previous = all[index - 1];
    const late = previous && last ? await read(previous, page) : [];
    if (late.length > 0) return { messages: late, readTo: late.at(-1)?.id ?? null };
    if (found.readTo !== null || !(await hasAny(all.slice(index + 1)))) return found;
    return { ...found, readTo: last?.id ?? null };
  }
  return { messages: [], readTo: null };
}

async function hasAny(days: readonly Messages[]): Promise<boolean> {
  const first = { limit: 1, projection: { _id: 1 }, sort: { _id: 1 } } as const;
  const found = await readUpTo(days, 1, (messages) => messages.find({}, first).toArray());
  return found.length > 0;
}

async function readBounded(messages: Messages, page: BoundedPage): Promise<PageInBounds> {
  // Reads ids in the index only: 50,000 took 50 ms.
  const [end] = await messages
    .find({ _id: { $gt: page.afterId } }, COMMITTED)
    .project<Pick<MessageDocument, '_id'>>({ _id: 1 })
    .sort({ _id: 1 })
    .skip(page.maxRead - 1)
    .limit(1)
    .toArray();
  const found = await read(messages, page, end?._id);
  const isFull = found.length === page.limit;
  return { messages: found, readTo: (isFull ? found.at(-1)?.id : end?._id) ?? null };
}

/** Reads the messages after `afterId`, up to and including `upToId` when it is given. */
async function read(
  messages: Messages,
  { publisherId, afterId, limit }: Page,
  upToId?: string,
): Promise<Message[]> {
  const _id = upToId === undefined ? { $gt: afterId } : { $gt: afterId, $lte: upToId };
  const found = messages.find({ _id, publisherId }, COMMITTED);
  return (await found.sort({ _id: 1 }).limit(limit).toArray()).map(toMessage);
}
