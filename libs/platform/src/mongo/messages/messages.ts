import {
  type Idempotency,
  type Lifetime,
  type Message,
  NONE_DISABLED,
} from '@posthorn/domain/message.ts';
import { required, requiredAt } from '@posthorn/domain/required.ts';
import mongoose, { type mongo } from 'mongoose';
import { monotonicClockMs } from '../../service/clock-and-ids.ts';
import { asStoreError, DUPLICATE_KEY } from '../connect.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, readUpTo } from '../days/read-days.ts';
import { databaseClockMs } from '../database-time.ts';
import type { LifetimeDates, MessageDocument } from '../documents.ts';
import { createClaim, createClaimKeys, createKeyClaims } from './idempotency-keys.ts';

/**
 * The result of a message of a batch. `repeated`: another message has its idempotency key.
 * `unconfirmed`: the server did not respond, so it may be stored or not.
 */
export type InsertOutcome = 'stored' | 'repeated' | 'refused' | 'unconfirmed';

export interface StoredPayload {
  companyId: string;
  /** '' when it was erased. */
  payload: string;
  isErased: boolean;
  /** Id of the request with the message. */
  requestId: string;
  /** Trace context of that request. */
  traceparent?: string;
  eventType?: string;
}

export interface MessageStore {
  /**
   * One majority write for all of one day. A refused document does not affect the others. A batch that crosses
   * midnight is stored in the order of its ids: the older day first.
   */
  insertAll: (messages: readonly Message[]) => Promise<InsertOutcome[]>;
  /** By message id. Messages that are not stored are missing. */
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
  const { messages } = db.days;
  const claim = createClaim({
    claims: createKeyClaims(db),
    databaseMs: () => databaseClockMs(db),
    monotonicMs,
  });
  const claimKeys = createClaimKeys({ claim, monotonicMs });
  return {
    async insertAll(all) {
      const notClaimed = await claimKeys(all);
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
    payloadsOf: (ids) => readPayloads(messages, ids),
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

async function readPayloads(
  messages: Days['messages'],
  ids: readonly string[],
): Promise<Map<string, StoredPayload>> {
  const headers = { requestId: 1, traceparent: 1, eventType: 1 };
  const projection = { companyId: 1, payload: 1, isPayloadErased: 1, ...headers };
  const found = await readByIds(messages, ids, (documents, ofDay) =>
    documents.find({ _id: { $in: ofDay } }, { projection }).toArray(),
  );
  return new Map(
    found.map(({ _id, isPayloadErased: isErased = false, ...stored }) => [
      _id,
      { ...stored, isErased },
    ]),
  );
}

/**
 * Throws an error without a reply of the server only for the first day of a batch: nothing of the batch is stored then. Later it
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

/** Translates between messages and their documents, in which what most messages do not have is absent. */

export function toDocument(message: Message): MessageDocument {
  const { id, createdAtMs, deliverAtMs, expiresAtMs, removeAtMs, ...others } = message;
  const { eventType, disabledTargets, idempotency, ...rest } = others;
  return {
    _id: id,
    ...rest,
    createdAt: new Date(createdAtMs),
    ...lifetimeDates(expiresAtMs, removeAtMs),
    ...(deliverAtMs !== undefined && { deliverAt: new Date(deliverAtMs) }),
    ...(eventType !== null && { eventType }),
    ...(disabledTargets.size > 0 && { disabledTargets: [...disabledTargets] }),
    ...(idempotency && { idempotency: withoutPlace(idempotency) }),
  };
}

/** The claim has the place of an ingested record, and only the claim needs it. */
function withoutPlace({ key, bodyHash, answer }: Idempotency): Idempotency {
  return { key, bodyHash, answer };
}

export function toMessage(document: MessageDocument): Message {
  const { _id, createdAt, deliverAt, expiresAt, removeAt, ...others } = document;
  const { eventType, disabledTargets, idempotency, ...rest } = others;
  return {
    id: _id,
    ...rest,
    ...lifetimeIn(expiresAt, removeAt),
    ...(deliverAt && { deliverAtMs: deliverAt.getTime() }),
    createdAtMs: createdAt.getTime(),
    eventType: eventType ?? null,
    disabledTargets: disabledSetOf(disabledTargets),
    idempotency: idempotency ?? null,
  };
}

const NO_DATES: LifetimeDates = {};
const UNLIMITED: Lifetime = {};

export function lifetimeDates(
  expiresAtMs: number | undefined,
  removeAtMs: number | undefined,
): LifetimeDates {
  if (expiresAtMs === undefined && removeAtMs === undefined) return NO_DATES;
  return {
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs) }),
    ...(removeAtMs !== undefined && { removeAt: new Date(removeAtMs) }),
  };
}

export function lifetimeIn(expiresAt: Date | undefined, removeAt: Date | undefined): Lifetime {
  if (!expiresAt && !removeAt) return UNLIMITED;
  return {
    ...(expiresAt && { expiresAtMs: expiresAt.getTime() }),
    ...(removeAt && { removeAtMs: removeAt.getTime() }),
  };
}

/** The set of what a document lists; it has no list when nothing was disabled. */
export function disabledSetOf(disabledTargets: readonly string[] | undefined): ReadonlySet<string> {
  return disabledTargets ? new Set(disabledTargets) : NONE_DISABLED;
}

export interface Page {
  publisherId: string;
  /** Exclusive; '' for the first page. */
  afterId: string;
  limit: number;
}

interface BoundedPage extends Page {
  /** How many messages, of all publishers, the page may read at most. */
  maxRead: number;
}

/** `readTo` is the id where the next page begins; null when there is nothing behind this one. */
interface PageInBounds {
  messages: Message[];
  readTo: string | null;
}

type Messages = mongo.Collection<MessageDocument>;

/** For reads that decide what is published: a rollback must not take such a message back. */
const COMMITTED = { readConcern: { level: 'majority' } } as const;

/**
 * Reads the messages of one publisher, one day after the other. A publisher stores the older day of a batch that
 * crosses midnight first, so a day is complete when the next one has a message. It may not have been when it was
 * read, and is read again then: what is missing before a published message would never be published.
 */
async function readPage(days: Days['messages'], page: Page): Promise<Message[]> {
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
async function readBoundedPage(days: Days['messages'], page: BoundedPage): Promise<PageInBounds> {
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
