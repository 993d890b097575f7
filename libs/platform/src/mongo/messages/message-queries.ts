import { allTargetsOf, charsOfMessage, type Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { setImmediate as pause } from 'node:timers/promises';
import { documentsIn, type CompanyDocuments } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { readAll, readInOrder } from '../days/read-days.ts';
import type { MessageDocument } from '../documents.ts';
import { createKeyHolders, type KeyHolders } from './idempotency-keys.ts';
import { disabledSetOf, toMessage } from './messages.ts';

interface MessageFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  /** Was disabled when the message was accepted. */
  disabledWebhookId?: string | undefined;
  tag?: string | undefined;
  externalId?: string | undefined;
  /** Bounds of the id: `fromId` is inclusive, `beforeId` is exclusive. */
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** A message without its payload, which may be 256 KiB: lists read many. */
export type MessageOutline = Pick<
  Message,
  | 'id'
  | 'appId'
  | 'eventType'
  | 'tags'
  | 'externalId'
  | 'targets'
  | 'disabledTargets'
  | 'deliverAtMs'
>;

/** A read ends with the outline that reaches one of the bounds. */
export interface OutlineBounds {
  messages: number;
  /** The sum over all messages read; one message may exceed it alone. */
  targets: number;
}

/** The API's queries about the messages of one company. */
export interface MessageQueries extends KeyHolders {
  /** Finds a message; the webhooks that got it by a replay are among its targets. */
  findOne: (companyId: string, messageId: string) => Promise<Message | null>;
  /** Finds a message with the targets that it was accepted with alone. */
  findAccepted: (companyId: string, messageId: string) => Promise<Message | null>;
  /** The messages whose ids have this time part: those of one millisecond, oldest first. Few are in memory at once. */
  outlinesAt: (companyId: string, timePart: string) => AsyncIterable<MessageOutline>;
  /** The ids alone, newest first. */
  listIds: (companyId: string, filter: MessageFilter, limit: number) => Promise<string[]>;
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
  /** By message id; null without one. Messages that are not stored are missing. */
  eventTypesOf: (
    companyId: string,
    messageIds: readonly string[],
  ) => Promise<Map<string, string | null>>;
  /** Newest first; the last one is that with which the texts of clients reach `maxChars` together. */
  findMany: (
    companyId: string,
    messageIds: readonly string[],
    maxChars: number,
  ) => Promise<Message[]>;
}

type Own = CompanyDocuments<'messages'>;

export function createMessageQueries(db: Database): MessageQueries {
  const { messages } = db.days;
  const ownIn = (companyId: string) => (documents: mongo.Collection<MessageDocument>) =>
    documentsIn<'messages'>(documents, companyId);
  const ownOf = (companyId: string, id: string): Own => ownIn(companyId)(messages.of(id));
  /** The company's documents that match, by days, the newest first. */
  const matching = (companyId: string, wanted: MessageFilter): Part[] => {
    const span = messages.kept(wanted, 'msg');
    const filter = filterOf({ ...wanted, ...span });
    const days = messages.within(span).reverse();
    return days.map((day) => ({ own: ownIn(companyId)(day), filter }));
  };
  /** The company's documents of these ids, by days, the newest first. */
  const withIds = (companyId: string, ids: readonly string[]): Part[] =>
    messages
      .group(
        ids.filter((id) => messages.isKept(id)),
        (id) => id,
      )
      .reverse()
      .map(({ documents, items }) => ({
        own: ownIn(companyId)(documents),
        filter: { _id: { $in: [...items] } },
      }));
  const find = async (companyId: string, _id: string, read: typeof toMessage) => {
    const found = messages.isKept(_id) ? await ownOf(companyId, _id).findOne({ _id }) : null;
    return found && messages.isKept(_id, found.removeAt) ? read(found) : null;
  };
  return {
    findOne: (companyId, id) => find(companyId, id, shownOf),
    findAccepted: (companyId, id) => find(companyId, id, toMessage),
    outlinesAt: (companyId, timePart) => {
      const prefix = `msg_${timePart}`;
      if (!messages.isKept(prefix)) return nothing();
      return outlinesFrom(ownOf(companyId, prefix), prefix, messages.isKept);
    },
    listIds: (companyId, filter, limit) => readIds(matching(companyId, filter), limit),
    listOutlines: (companyId, filter, bounds) =>
      readOutlines(notRemoved(messages, matching(companyId, filter)), bounds),
    outlinesOf(companyId, ids, targets) {
      const bounds = { messages: ids.length, targets };
      return readOutlines(notRemoved(messages, withIds(companyId, ids)), bounds);
    },
    eventTypesOf: (companyId, ids) => readEventTypes(withIds(companyId, [...new Set(ids)])),
    findMany: (companyId, ids, maxChars) =>
      readMessages(withIds(companyId, ids), maxChars, messages.isKept),
    ...createKeyHolders(db),
  };
}

/** Expired messages are left out by the query, because a page that is short ends a list. */
function notRemoved(messages: Messages, parts: readonly Part[]): Part[] {
  return parts.map(({ own, filter }) => ({ own, filter: { ...filter, ...messages.notRemoved() } }));
}

async function readEventTypes(parts: Part[]): Promise<Map<string, string | null>> {
  const found = await readAll(parts, ({ own, filter }) =>
    own
      .find(filter)
      .project<Pick<MessageDocument, '_id' | 'eventType'>>({ eventType: 1 })
      .toArray(),
  );
  return new Map(found.flat().map(({ _id, eventType }) => [_id, eventType ?? null]));
}

/** The part of one day to read. */
interface Part {
  own: Own;
  filter: Parameters<Own['find']>[0];
}

type OutlineDocument = Pick<
  MessageDocument,
  | '_id'
  | 'appId'
  | 'eventType'
  | 'tags'
  | 'externalId'
  | 'targets'
  | 'addedTargets'
  | 'disabledTargets'
  | 'deliverAt'
>;

/** The size of the server's first batch: 3 MB of messages to 1,000 webhooks each. */
const BATCH = 101;

const OUTLINE = {
  appId: 1,
  eventType: 1,
  tags: 1,
  externalId: 1,
  targets: 1,
  addedTargets: 1,
  disabledTargets: 1,
  deliverAt: 1,
} as const;

type Messages = Database['days']['messages'];
type IsKept = Messages['isKept'];
type Removed = Pick<MessageDocument, 'removeAt'>;

async function* nothing(): AsyncGenerator<never> {
  // No message of this millisecond is kept.
}

/** 12 MB of messages to 10,000 disabled webhooks each. */
const BATCH_OF_A_SEARCH = 16;

/** To decode a message to 10,000 disabled webhooks takes 5 ms of CPU time: nothing is decoded before it is asked for. */
async function* outlinesFrom(
  own: Own,
  idPrefix: string,
  isKept: IsKept,
): AsyncGenerator<MessageOutline> {
  const found = own.find({ _id: { $gte: idPrefix, $lt: `${idPrefix}~` } }).sort({ _id: 1 });
  const outlines = found.project<OutlineDocument & Removed>({ ...OUTLINE, removeAt: 1 });
  for await (const { removeAt, ...document } of outlines.batchSize(BATCH_OF_A_SEARCH)) {
    if (isKept(document._id, removeAt)) yield toOutline(document);
  }
}

/** Targets that are decoded before the event loop runs other work: 2 ms of CPU time, as much again for disabled ones. */
const TARGETS_OF_A_SLICE = 5_000;

/** Returns a function that is called with the targets of each document, and pauses after each slice of so many. */
function createPauses(): (targets: number) => Promise<void> | undefined {
  let ofThisSlice = 0;
  return (targets) => {
    ofThisSlice += targets;
    if (ofThisSlice < TARGETS_OF_A_SLICE) return undefined;
    ofThisSlice = 0;
    return pause();
  };
}

async function readIds(parts: readonly Part[], limit: number): Promise<string[]> {
  const ids: string[] = [];
  const read = ({ own, filter }: Part): Promise<{ _id: string }[]> => {
    const found = own.find(filter).sort({ _id: -1 });
    return found
      .limit(limit - ids.length)
      .project<{ _id: string }>({ _id: 1 })
      .toArray();
  };
  for await (const page of readInOrder(parts, read)) {
    ids.push(...page.map(({ _id }) => _id));
    if (ids.length >= limit) break;
  }
  return ids.slice(0, limit);
}

/** A few days are asked at once, but beyond its first batch each is read in its turn: together they keep the bounds. */
async function readOutlines(
  parts: readonly Part[],
  { messages: limit, targets: maxTargets }: OutlineBounds,
): Promise<MessageOutline[]> {
  const read: MessageOutline[] = [];
  const opened: mongo.FindCursor<OutlineDocument>[] = [];
  const pauseAfterSlice = createPauses();
  let targets = 0;
  const open = async ({ own, filter }: Part): Promise<mongo.FindCursor<OutlineDocument>> => {
    const found = own.find(filter).sort({ _id: -1 });
    const cursor = found.limit(limit - read.length).project<OutlineDocument>(OUTLINE);
    opened.push(cursor.batchSize(BATCH));
    await cursor.hasNext();
    return cursor;
  };
  try {
    for await (const cursor of readInOrder(parts, open)) {
      for await (const document of cursor) {
        read.push(toOutline(document));
        targets += document.targets.length;
        if (read.length >= limit || targets >= maxTargets) return read;
        await pauseAfterSlice(document.targets.length);
      }
    }
    return read;
  } finally {
    await Promise.all(opened.map((cursor) => cursor.close()));
  }
}

/** 4 MB of the largest payloads. */
const MESSAGE_BATCH = 16;

async function readMessages(
  parts: readonly Part[],
  maxChars: number,
  isKept: IsKept,
): Promise<Message[]> {
  const read: Message[] = [];
  const pauseAfterSlice = createPauses();
  let chars = 0;
  for (const { own, filter } of parts) {
    for await (const document of own.find(filter).sort({ _id: -1 }).batchSize(MESSAGE_BATCH)) {
      if (!isKept(document._id, document.removeAt)) continue;
      read.push(shownOf(document));
      chars += charsOfMessage(document);
      if (chars >= maxChars) return read;
      await pauseAfterSlice(document.targets.length);
    }
  }
  return read;
}

function toOutline(document: OutlineDocument): MessageOutline {
  const { _id: id, eventType = null, disabledTargets, addedTargets, deliverAt, ...rest } = document;
  const targets = allTargetsOf({ targets: rest.targets, ...(addedTargets && { addedTargets }) });
  return {
    ...rest,
    id,
    eventType,
    targets,
    disabledTargets: disabledSetOf(disabledTargets),
    ...(deliverAt && { deliverAtMs: deliverAt.getTime() }),
  };
}

/** The message with the webhooks that got it by a replay among its targets. */
function shownOf(document: MessageDocument): Message {
  const message = toMessage(document);
  return { ...message, targets: allTargetsOf(message) };
}

function filterOf({
  appId,
  webhookId,
  disabledWebhookId,
  tag,
  externalId,
  fromId,
  beforeId,
}: MessageFilter) {
  const range = { ...(fromId && { $gte: fromId }), ...(beforeId && { $lt: beforeId }) };
  return {
    ...(Object.keys(range).length > 0 && { _id: range }),
    ...(appId !== undefined && { appId }),
    ...(webhookId !== undefined && { $or: [{ targets: webhookId }, { addedTargets: webhookId }] }),
    ...(disabledWebhookId !== undefined && { disabledTargets: disabledWebhookId }),
    ...(tag !== undefined && { tags: tag }),
    ...(externalId !== undefined && { externalId }),
  };
}
