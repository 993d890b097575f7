import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';
import type { MessageDocument } from '../documents.ts';
import { toMessage } from './messages.ts';

export interface MessageFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  /** Bounds of the id: `fromId` is inclusive, `beforeId` is exclusive. */
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** A message without its payload, which may be 256 KiB: lists read many. */
export type MessageOutline = Pick<Message, 'id' | 'appId' | 'targets' | 'disabledTargets'>;

/** The message that has an idempotency key, without its payload and first response: both may be large. */
export interface KeyHolder {
  id: string;
  createdAtMs: number;
  /** SHA-256 of the body of its request, hex. */
  bodyHash: string;
  /** The size of its document. */
  storedBytes: number;
}

/** A read ends with the outline that reaches one of the bounds. */
export interface OutlineBounds {
  messages: number;
  /** The sum over all messages read; one message may exceed it alone. */
  targets: number;
}

/** The API's queries about the messages of one company. */
export interface MessageQueries {
  findOne: (companyId: string, messageId: string) => Promise<Message | null>;
  /** Messages whose id begins with this text; ids of one millisecond share 14 characters. */
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
  /** Newest first; the last one is that with which the payloads reach `maxPayloadChars` together. */
  findMany: (
    companyId: string,
    messageIds: readonly string[],
    maxPayloadChars: number,
  ) => Promise<Message[]>;
  /** Finds which majority-committed message has this idempotency key, without reading the message. */
  findKeyHolder: (companyId: string, idempotencyKey: string) => Promise<KeyHolder | null>;
  /** Removes the idempotency key of a message, so that another one may use it. */
  releaseKey: (companyId: string, messageId: string) => Promise<void>;
}

export function createMessageQueries(db: mongo.Db): MessageQueries {
  const own = (companyId: string) => documentsOf(db, 'messages', companyId);
  // The first response is repeated from this read: a rollback must not take the message back.
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
    findMany(companyId, ids, maxPayloadChars) {
      const found = own(companyId).find({ _id: { $in: [...ids] } });
      return readMessages(found.sort({ _id: -1 }), maxPayloadChars);
    },
    async findKeyHolder(companyId, key) {
      const found = own(companyId).find({ 'idempotency.key': key }, decided);
      const [holder] = await found.project<KeyHolderDocument>(KEY_HOLDER).toArray();
      return holder ? toKeyHolder(holder) : null;
    },
    async releaseKey(companyId, _id) {
      await own(companyId).updateMany({ _id }, { $unset: { idempotency: '' } });
    },
  };
}

interface KeyHolderDocument extends Pick<MessageDocument, '_id' | 'createdAt'> {
  idempotency: { bodyHash: string };
  storedBytes: number;
}

const KEY_HOLDER = {
  createdAt: 1,
  'idempotency.bodyHash': 1,
  storedBytes: { $bsonSize: '$$ROOT' },
} as const;

function toKeyHolder({
  _id: id,
  createdAt,
  idempotency,
  storedBytes,
}: KeyHolderDocument): KeyHolder {
  return {
    id,
    createdAtMs: createdAt.getTime(),
    bodyHash: idempotency.bodyHash,
    storedBytes,
  };
}

type OutlineDocument = Pick<MessageDocument, '_id' | 'appId' | 'targets' | 'disabledTargets'>;

/** The size of the server's first batch: 3 MB of messages to 1,000 webhooks each. */
const BATCH = 101;

const OUTLINE = { appId: 1, targets: 1, disabledTargets: 1 } as const;

/** Reads batch by batch, so that nothing beyond the bound is fetched. */
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

/** 4 MB of the largest payloads. */
const MESSAGE_BATCH = 16;

async function readMessages(
  found: mongo.FindCursor<MessageDocument>,
  maxPayloadChars: number,
): Promise<Message[]> {
  const read: Message[] = [];
  let chars = 0;
  for await (const document of found.batchSize(MESSAGE_BATCH)) {
    read.push(toMessage(document));
    chars += document.payload.length;
    if (chars >= maxPayloadChars) break;
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
