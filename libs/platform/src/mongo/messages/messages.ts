import type { Message } from '@posthorn/domain/message.ts';
import { required, requiredAt } from '@posthorn/domain/required.ts';
import mongoose, { type mongo } from 'mongoose';
import { monotonicClockMs } from '../../service/clock-and-ids.ts';
import { asStoreError } from '../connection/connect.ts';
import type { Database } from '../days/days.ts';
import { readByIds } from '../days/read-days.ts';
import type { MessageDocument } from '../documents/documents.ts';
import { DUPLICATE_KEY } from '../connection/duplicate-key.ts';
import { createClaimKeys, NONE } from './claim-keys.ts';
import { createIdempotencyKeys } from './idempotency-keys.ts';
import { toDocument, toMessage } from './message-documents.ts';
import {
  COMMITTED,
  readBoundedPage,
  readPage,
  type BoundedPage,
  type Page,
  type PageInBounds,
} from './publisher-pages.ts';

/**
 * What became of a message of a batch. `repeated`: another message has its idempotency key.
 * `unconfirmed`: the server did not respond, so it may be stored or not.
 */
export type InsertOutcome = 'stored' | 'repeated' | 'refused' | 'unconfirmed';

export interface StoredPayload {
  companyId: string;
  payload: string;
}

export interface MessageStore {
  /**
   * One majority write for all of one day. A refused document does not affect the others. A batch that crosses
   * midnight is stored in the order of its ids: the older day first.
   */
  insertAll: (messages: readonly Message[]) => Promise<InsertOutcome[]>;
  /** By message id. Messages that are not stored are missing, and those whose payload was erased. */
  payloadsOf: (messageIds: readonly string[]) => Promise<Map<string, StoredPayload>>;
  /** Messages of one publisher in the order in which it stored them; only majority-committed ones. */
  pageOf: (page: Page) => Promise<Message[]>;
  /**
   * Like `pageOf`, in bounded time: no index has the publisher, so a page of few messages may read
   * everything that the others stored.
   */
  boundedPageOf: (page: BoundedPage) => Promise<PageInBounds>;
  /** The messages among the ids that are majority-committed. */
  findCommitted: (messageIds: readonly string[]) => Promise<Message[]>;
}

const idOf = ({ id }: Message): string => id;

export function createMessageStore(
  db: Database,
  monotonicMs: () => number = monotonicClockMs,
): MessageStore {
  const { messages, areDecided } = db.days;
  const claimKeys = createClaimKeys({ keys: createIdempotencyKeys(db), monotonicMs });
  return {
    async insertAll(all) {
      const notClaimed = areDecided() ? await claimKeys(all) : NONE;
      const batch = notClaimed.size === 0 ? all : all.filter((each) => !notClaimed.has(each));
      const groups = messages.group(batch, idOf);
      const outcomes: InsertOutcome[][] = [];
      for (const { documents, items } of groups) {
        outcomes.push(await insertDay(documents, items, outcomes.length === 0));
      }
      if (batch === all && groups.length === 1) return outcomes.flat();
      const stored = groups.flatMap(({ items }) => items);
      const found = new Map([...notClaimed, ...zip(stored, outcomes.flat())]);
      return all.map((message) => required(found, message, 'outcome of the message'));
    },
    async payloadsOf(ids) {
      const entries = await readByIds(messages, ids, (documents, ofDay) =>
        documents
          .find(
            { _id: { $in: ofDay }, isPayloadErased: { $ne: true } },
            { projection: { companyId: 1, payload: 1 } },
          )
          .toArray(),
      );
      return new Map(entries.map(({ _id, companyId, payload }) => [_id, { companyId, payload }]));
    },
    pageOf: (page) => readPage(messages, page),
    boundedPageOf: (page) => readBoundedPage(messages, page),
    async findCommitted(ids) {
      const found = await readByIds(messages, ids, (documents, ofDay) =>
        documents.find({ _id: { $in: ofDay } }, COMMITTED).toArray(),
      );
      return found.map(toMessage);
    },
  };
}

/**
 * Throws an error that is no answer only for the first day of a batch: nothing of the batch is stored then. Later it
 * makes the messages of this day unconfirmed.
 */
async function insertDay(
  messages: mongo.Collection<MessageDocument>,
  batch: readonly Message[],
  isFirst: boolean,
): Promise<InsertOutcome[]> {
  try {
    await messages.insertMany(batch.map(toDocument), { ordered: false });
    return batch.map(() => 'stored');
  } catch (error) {
    const outcomes = outcomesOf(error, batch.length);
    if (!outcomes && isFirst) throw error;
    return outcomes ?? batch.map(() => 'unconfirmed');
  }
}

function zip(
  stored: readonly Message[],
  outcomes: readonly InsertOutcome[],
): [Message, InsertOutcome][] {
  return stored.map((message, index) => [
    message,
    requiredAt(outcomes, index, 'outcome of the message'),
  ]);
}

/**
 * Write errors name the refused documents by index. The others are unconfirmed unless the server has
 * responded for all of them: the driver throws the same error when the connection is lost. Null for an error
 * that is no answer.
 */
function outcomesOf(error: unknown, size: number): InsertOutcome[] | null {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) {
    if (asStoreError(error) === error) return null;
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
