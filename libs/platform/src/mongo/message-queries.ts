import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { documentsOf } from './company-documents.ts';
import type { MessageDocument } from './documents.ts';
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

/** What the API asks about the messages of one company. */
export interface MessageQueries {
  findOne: (companyId: string, messageId: string) => Promise<Message | null>;
  /** Messages of the company whose id starts with this text; ids of one millisecond share 14 characters. */
  findByIdPrefix: (companyId: string, idPrefix: string) => Promise<Message[]>;
  /** Newest first. */
  listOutlines: (
    companyId: string,
    filter: MessageFilter,
    limit: number,
  ) => Promise<MessageOutline[]>;
  /** In no particular order. */
  outlinesOf: (companyId: string, messageIds: readonly string[]) => Promise<MessageOutline[]>;
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
    async listOutlines(companyId, filter, limit) {
      const found = own(companyId).find(filterOf(filter)).project<OutlineDocument>(OUTLINE);
      return (await found.sort({ _id: -1 }).limit(limit).toArray()).map(toOutline);
    },
    async outlinesOf(companyId, ids) {
      const found = own(companyId).find({ _id: { $in: [...ids] } });
      return (await found.project<OutlineDocument>(OUTLINE).toArray()).map(toOutline);
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

const OUTLINE = { appId: 1, targets: 1, disabledTargets: 1 } as const;

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
