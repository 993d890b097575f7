import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';
import type { MessageDocument } from '../documents.ts';
import { toMessage } from './messages.ts';

export interface MessageFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  /** Bounds of the id: `fromId` is included, `beforeId` is not. */
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** A message without its payload: a scan must not hold a quarter of a megabyte for each. */
export type MessageOutline = Pick<Message, 'id' | 'appId' | 'targets' | 'disabledTargets'>;

/** A read ends behind the outline that reaches one of them; a message may have any number of targets. */
export interface OutlineBounds {
  messages: number;
  /** Over all messages that are read. */
  targets: number;
}

/** What the API asks about the messages of one company. */
export interface MessageQueries {
  findOne: (companyId: string, messageId: string) => Promise<Message | null>;
  /** Messages of the company whose id starts with this text; ids of one millisecond share 14 characters. */
  findByIdPrefix: (companyId: string, idPrefix: string) => Promise<Message[]>;
  /** Newest first. */
  listOutlines: (
    companyId: string,
    filter: MessageFilter,
    bounds: OutlineBounds,
  ) => Promise<MessageOutline[]>;
  /** Newest first. */
  outlinesOf: (
    companyId: string,
    messageIds: readonly string[],
    maxTargets: number,
  ) => Promise<MessageOutline[]>;
  /** In no particular order. */
  findMany: (companyId: string, messageIds: readonly string[]) => Promise<Message[]>;
  /** The message that was stored for good with this idempotency key. */
  findByKey: (companyId: string, idempotencyKey: string) => Promise<Message | null>;
  /** Makes the key of an old message free for another one. */
  releaseKey: (companyId: string, messageId: string) => Promise<void>;
}

export function createMessageQueries(db: mongo.Db): MessageQueries {
  const own = (companyId: string) => documentsOf(db, 'messages', companyId);
  // An answer that is given again rests on this read: a rollback must not take the message back.
  const decided = { readConcern: { level: 'majority' } } as const;
  return {
    async findOne(companyId, _id) {
      const found = await own(companyId).findOne({ _id });
      return found && toMessage(found);
    },
    async findByIdPrefix(companyId, idPrefix) {
      const range = { $gte: idPrefix, $lt: `${idPrefix}~` };
      return (await own(companyId).find({ _id: range }).toArray()).map(toMessage);
    },
    async listOutlines(companyId, filter, { messages, targets }) {
      const found = own(companyId).find(filterOf(filter)).sort({ _id: -1 }).limit(messages);
      return readOutlines(found.project<OutlineDocument>(OUTLINE), targets);
    },
    async outlinesOf(companyId, ids, maxTargets) {
      const found = own(companyId).find({ _id: { $in: [...ids] } });
      return readOutlines(found.sort({ _id: -1 }).project<OutlineDocument>(OUTLINE), maxTargets);
    },
    async findMany(companyId, ids) {
      return (
        await own(companyId)
          .find({ _id: { $in: [...ids] } })
          .toArray()
      ).map(toMessage);
    },
    async findByKey(companyId, key) {
      const [found] = await own(companyId).find({ 'idempotency.key': key }, decided).toArray();
      return found ? toMessage(found) : null;
    },
    async releaseKey(companyId, _id) {
      await own(companyId).updateMany({ _id }, { $unset: { idempotency: '' } });
    },
  };
}

type OutlineDocument = Pick<MessageDocument, '_id' | 'appId' | 'targets' | 'disabledTargets'>;

/** As many as the server's first batch has by itself: 3 MB of messages to a thousand webhooks each. */
const BATCH = 101;

const OUTLINE = { appId: 1, targets: 1, disabledTargets: 1 } as const;

/** Batch by batch, so that what lies behind the bound is not even fetched. */
async function readOutlines(
  found: mongo.FindCursor<OutlineDocument>,
  maxTargets: number,
): Promise<MessageOutline[]> {
  const read: MessageOutline[] = [];
  let targets = 0;
  for await (const document of found.batchSize(BATCH)) {
    read.push(toOutline(document));
    targets += document.targets.length;
    if (targets >= maxTargets) break;
  }
  return read;
}

function toOutline({ _id, appId, targets, disabledTargets }: OutlineDocument): MessageOutline {
  return { id: _id, appId, targets, disabledTargets: disabledTargets ?? [] };
}

function filterOf({ appId, webhookId, fromId, beforeId }: MessageFilter) {
  const range = { ...(fromId && { $gte: fromId }), ...(beforeId && { $lt: beforeId }) };
  return {
    ...(Object.keys(range).length > 0 && { _id: range }),
    ...(appId !== undefined && { appId }),
    ...(webhookId !== undefined && { targets: webhookId }),
  };
}
