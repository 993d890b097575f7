import type { Message } from '@posthorn/domain/message.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { asStoreError } from '../connect.ts';
import type { MessageDocument } from '../documents.ts';
import { DUPLICATE_KEY } from '../duplicate-key.ts';

/**
 * How each message of a batch fared: `repeated` has the idempotency key of another one, `doubtful`
 * may be stored, nobody answered.
 */
export type InsertOutcome = 'stored' | 'repeated' | 'refused' | 'doubtful';

export interface Page {
  publisherId: string;
  /** Exclusive; '' for the beginning. */
  afterId: string;
  limit: number;
}

export interface MessageStore {
  /** One majority write for all; one refused document fails only itself. */
  insertAll: (messages: readonly Message[]) => Promise<InsertOutcome[]>;
  payloadsOf: (messageIds: readonly string[]) => Promise<Map<string, string>>;
  /** Messages of one publisher in the order in which it stored them. */
  pageOf: (page: Page) => Promise<Message[]>;
  /** Those of the ids that are stored for good. */
  findDecided: (messageIds: readonly string[]) => Promise<Message[]>;
}

export function createMessageStore(db: mongo.Db): MessageStore {
  const messages = collection(db, 'messages');
  // A decision rests on these reads: a message that a rollback could take back must not be published.
  const decided = { readConcern: { level: 'majority' } } as const;

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
      const found = messages.find({ _id: { $in: [...ids] } }, { projection: { payload: 1 } });
      return new Map((await found.toArray()).map(({ _id, payload }) => [_id, payload]));
    },
    async pageOf({ publisherId, afterId, limit }) {
      const found = messages.find({ _id: { $gt: afterId }, publisherId }, decided);
      return (await found.sort({ _id: 1 }).limit(limit).toArray()).map(toMessage);
    },
    async findDecided(ids) {
      return (await messages.find({ _id: { $in: [...ids] } }, decided).toArray()).map(toMessage);
    },
  };
}

/**
 * Write errors name the refused documents by index. Unless the server has answered for every other
 * one as well, those are in doubt: the driver wraps a lost connection in the same error.
 */
function outcomesOf(error: unknown, size: number): InsertOutcome[] {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) {
    if (asStoreError(error) === error) throw error;
    return Array<InsertOutcome>(size).fill('doubtful');
  }
  const refused = new Map([error.writeErrors].flat().map((each) => [each.index, refusalOf(each)]));
  const isAnswered =
    !error.result.getWriteConcernError() && error.insertedCount + refused.size === size;
  const others = isAnswered && refused.size > 0 ? 'stored' : 'doubtful';
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
