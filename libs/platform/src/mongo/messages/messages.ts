import type { Message } from '@posthorn/domain/message.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { asStoreError } from '../connection/connect.ts';
import type { MessageDocument } from '../documents.ts';
import { DUPLICATE_KEY } from '../connection/duplicate-key.ts';

/**
 * What became of a message of a batch. `repeated`: another message has its idempotency key.
 * `unconfirmed`: the server did not respond, so it may be stored or not.
 */
export type InsertOutcome = 'stored' | 'repeated' | 'refused' | 'unconfirmed';

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

export interface StoredPayload {
  companyId: string;
  payload: string;
}

export interface MessageStore {
  /** One majority write for all. A refused document does not affect the others. */
  insertAll: (messages: readonly Message[]) => Promise<InsertOutcome[]>;
  /** By message id. Messages that are not stored are missing, and those whose payload was erased. */
  payloadsOf: (messageIds: readonly string[]) => Promise<Map<string, StoredPayload>>;
  /** Messages of one publisher in the order in which it stored them; only majority-committed ones. */
  pageOf: (page: Page) => Promise<Message[]>;
  /**
   * Like `pageOf`, in bounded time: no index has the publisher, so a page of few messages may read
   * everything that the others stored. `readTo` is the id where the next page begins; null when there is
   * nothing behind this one.
   */
  boundedPageOf: (page: BoundedPage) => Promise<{ messages: Message[]; readTo: string | null }>;
  /** The messages among the ids that are majority-committed. */
  findCommitted: (messageIds: readonly string[]) => Promise<Message[]>;
}

export function createMessageStore(db: mongo.Db): MessageStore {
  const messages = collection(db, 'messages');
  // These reads decide what is published: a rollback must not take such a message back.
  const committed = { readConcern: { level: 'majority' } } as const;

  /** Reads the messages after `afterId`, up to and including `upToId` when it is given. */
  async function read({ publisherId, afterId, limit }: Page, upToId?: string): Promise<Message[]> {
    const _id = upToId === undefined ? { $gt: afterId } : { $gt: afterId, $lte: upToId };
    const found = messages.find({ _id, publisherId }, committed);
    return (await found.sort({ _id: 1 }).limit(limit).toArray()).map(toMessage);
  }

  return {
    async insertAll(batch) {
      try {
        await messages.insertMany(batch.map(toDocument), { ordered: false });
        return batch.map(() => 'stored');
      } catch (error) {
        return outcomesOf(error, batch.length);
      }
    },
    async payloadsOf(ids) {
      const found = messages.find(
        { _id: { $in: [...ids] }, isPayloadErased: { $ne: true } },
        { projection: { companyId: 1, payload: 1 } },
      );
      const entries = await found.toArray();
      return new Map(entries.map(({ _id, companyId, payload }) => [_id, { companyId, payload }]));
    },
    pageOf: (page) => read(page),
    async boundedPageOf({ maxRead, ...page }) {
      // Reads ids in the index only: 50,000 took 50 ms.
      const later = messages.find({ _id: { $gt: page.afterId } }, committed);
      const [end] = await later
        .project<Pick<MessageDocument, '_id'>>({ _id: 1 })
        .sort({ _id: 1 })
        .skip(maxRead - 1)
        .limit(1)
        .toArray();
      const found = await read(page, end?._id);
      const isFull = found.length === page.limit;
      return { messages: found, readTo: (isFull ? found.at(-1)?.id : end?._id) ?? null };
    },
    async findCommitted(ids) {
      return (await messages.find({ _id: { $in: [...ids] } }, committed).toArray()).map(toMessage);
    },
  };
}

/**
 * Write errors name the refused documents by index. The others are unconfirmed unless the server has
 * responded for all of them: the driver throws the same error when the connection is lost.
 */
function outcomesOf(error: unknown, size: number): InsertOutcome[] {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) {
    if (asStoreError(error) === error) throw error;
    return Array<InsertOutcome>(size).fill('unconfirmed');
  }
  const refused = new Map([error.writeErrors].flat().map((each) => [each.index, refusalOf(each)]));
  const isAnswered =
    !error.result.getWriteConcernError() && error.insertedCount + refused.size === size;
  const others = isAnswered && refused.size > 0 ? 'stored' : 'unconfirmed';
  return Array.from({ length: size }, (_, index) => refused.get(index) ?? others);
}

function refusalOf({ code, errmsg }: mongo.WriteError): 'repeated' | 'refused' {
  const isRepeated = code === DUPLICATE_KEY && errmsg?.includes('idempotency.key');
  return isRepeated ? 'repeated' : 'refused';
}

function toDocument(message: Message): MessageDocument {
  const { id, createdAtMs, eventType, disabledTargets, idempotency, ...rest } = message;
  return {
    _id: id,
    ...rest,
    createdAt: new Date(createdAtMs),
    ...(eventType !== null && { eventType }),
    ...(disabledTargets.length > 0 && { disabledTargets }),
    ...(idempotency && { idempotency }),
  };
}

export function toMessage(document: MessageDocument): Message {
  const { _id, createdAt, eventType, disabledTargets, idempotency, ...rest } = document;
  return {
    id: _id,
    ...rest,
    createdAtMs: createdAt.getTime(),
    eventType: eventType ?? null,
    disabledTargets: disabledTargets ?? [],
    idempotency: idempotency ?? null,
  };
}
