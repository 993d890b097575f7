import { EXPIRED_WHILE_WAITING } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { WAITING } from '@posthorn/domain/waiting.ts';
import { DAY_MS, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import { notStoredOf, orderOf } from '@posthorn/domain/message.ts';
import { HOUR_MS } from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { type CompanyDocuments, documentsIn } from '../company-documents.ts';
import {
  DUE_KEY,
  EXPIRING,
  EXPIRING_KEY,
  EXPIRING_OF_COMPANY_KEY,
  TIMED,
  TIMED_OF_COMPANY_KEY,
  WAITING_KEY,
} from '../days/day-collections.ts';
import type { Database, Days } from '../days/days.ts';
import { countUpTo, readAll, readByIds, readUpTo, writeByDays } from '../days/read-days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createReadDuePage, type DueKind, longestDue, orNone } from '../read-due.ts';
import { cancelUpdate, NOT_WAITING } from './deliveries.ts';
import { lifetimeIn } from './messages.ts';

/** A delivery that waits, as its release reads it. Times are in milliseconds since 1970. */
export interface WaitingDelivery extends DeliveryRef {
  id: string;
  /** Number of its last attempt. */
  attemptCount: number;
  waitingSinceMs: number;
  /** When it is due, or the time since which it waits on hold. */
  dueAtMs: number;
}

/** A webhook with deliveries on hold. */
export interface WaitingOwner {
  companyId: string;
  webhookId: string;
}

/** The same with the delivery that its release begins with. */
export interface WaitingWebhook extends WaitingOwner {
  firstId: string;
}

/** The released deliveries of a webhook to look for. */
export interface UnderWay {
  /** The id of the first that waits: they are released in order. */
  beforeId: string;
  limit: number;
}

/** The released deliveries without a result, by id. */
export interface SeenReleased {
  /** Their attempt is under way, or is to be made. */
  open: Set<string>;
  /** They wait again. */
  heldAgain: Set<string>;
}

/** Deliveries that wait while their webhook is on hold, or for the time of their message. Every change may be repeated. */
export interface WaitingDeliveries {
  /** The next ones of a webhook, oldest first. `fromId` ('' for all) is that of the oldest that may be left. */
  page: (webhook: WaitingOwner, fromId: string, limit: number) => Promise<WaitingDelivery[]>;
  /** The same with those that wait for their order: all of them end with a webhook that is deleted or disabled. */
  pageToCancel: (
    webhook: WaitingOwner,
    fromId: string,
    limit: number,
  ) => Promise<WaitingDelivery[]>;
  /**
   * Ends the wait of these, unless they have begun to wait again since they were read. From `atMs` on they count as due,
   * so that the sweep of stuck deliveries finds them when their records are lost.
   */
  endWait: (deliveries: readonly WaitingDelivery[], atMs: number) => Promise<void>;
  /**
   * The deliveries whose time has come, of the days that may have any, at most so many of each. When a day has more, half of them
   * are those that have been due for the longest, and the others are of each company that is due in turn.
   */
  dueAt: (nowMs: number, limit: number) => Promise<WaitingDelivery[]>;
  /** Makes the next `dueAt` look at all days: a delivery of an old message has begun to wait for the time of its message. */
  lookAtAllDays: () => void;
  /** The deliveries on hold whose message has expired (`expiresAt`), in the same way. */
  expiredAt: (nowMs: number, limit: number) => Promise<WaitingDelivery[]>;
  /**
   * Of the last `limit` pending ones of a webhook before `beforeId`, those that were released and have no result since. Oldest
   * first.
   */
  underWay: (webhook: WaitingOwner, of: UnderWay) => Promise<WaitingDelivery[]>;
  /** Looks for their attempts. */
  look: (released: readonly WaitingDelivery[]) => Promise<SeenReleased>;
  /** Counts those of a webhook up to `limit`. */
  count: (webhook: WaitingOwner, limit: number) => Promise<number>;
  /** The webhooks of a company that have any, of these ids where some are given; a webhook comes once for each day. */
  webhooks: (companyId: string, webhookIds?: readonly string[]) => AsyncIterable<WaitingOwner>;
  /** The same of all companies, the oldest day first. */
  allWebhooks: () => AsyncIterable<WaitingWebhook>;
  /**
   * Cancels at most `limit` waiting deliveries of the day whose collection is dropped within a day, by `nowMs`. Returns
   * how many.
   */
  expire: (nowMs: number, limit: number) => Promise<number>;
}

const ON_HOLD = { waiting: 'hold', status: 'pending' } as const;
const TO_CANCEL = { waiting: { $in: ['hold', 'order'] }, status: 'pending' } as const;

type DeliveryDays = Days['deliveries'];
type Deliveries = mongo.Collection<DeliveryDocument>;
type Found = Omit<DeliveryDocument, 'attempts'>;

export function createWaitingDeliveries({
  days: { deliveries, retentionMs },
}: Pick<Database, 'days'>): WaitingDeliveries {
  const timed = createReadDue(deliveries, DUE);
  return {
    page: (webhook, fromId, limit) =>
      readPage(deliveries, webhook, { fromId, limit, filter: ON_HOLD }),
    pageToCancel: (webhook, fromId, limit) =>
      readPage(deliveries, webhook, { fromId, limit, filter: TO_CANCEL }),
    async endWait(page, atMs) {
      const idOf = ({ id }: WaitingDelivery): string => id;
      await writeByDays(deliveries, page, idOf, (documents, ofDay) =>
        endWaits(documents, ofDay, new Date(atMs)),
      );
    },
    dueAt: timed.due,
    lookAtAllDays: timed.lookAtAllDays,
    expiredAt: createReadDue(deliveries, EXPIRED).due,
    underWay: (webhook, of) => readUnderWay(deliveries, webhook, of),
    look: (released) => look(deliveries, released),
    async count({ companyId, webhookId }, limit) {
      const span = deliveries.kept({}, 'dlv');
      const filter = { ...ON_HOLD, webhookId, _id: { $gte: span.fromId } };
      const { sum } = await countUpTo(deliveries.within(span), limit, (documents, left) =>
        documentsIn<'deliveries'>(documents, companyId).count(filter, { limit: left }),
      );
      return sum;
    },
    webhooks: (companyId, webhookIds) => webhooksOf(deliveries, companyId, webhookIds),
    allWebhooks: () => allWebhooks(deliveries),
    expire: (nowMs, limit) => {
      const oldest = deliveries.of(firstIdAt('dlv', nowMs - retentionMs()));
      return expire(oldest, limit, nowMs);
    },
  };
}

/**
 * How far from the hour of its message a delivery begins to wait: later in a backlog of records only, earlier where clocks
 * differ.
 */
const NEAR_MS = { before: 6 * HOUR_MS, after: HOUR_MS };

interface ReadDue {
  due: WaitingDeliveries['dueAt'];
  lookAtAllDays: () => void;
}

/**
 * Messages of any day may be due, and nearly no day has any: so the days in which deliveries begin to wait now are read each
 * time, and of the others those whose next delivery is due before the next look at all of them: each of 32 days every two
 * seconds would be 16 commands a second of an idle service.
 */
function createReadDue(
  days: DeliveryDays,
  { kind, lookAtAllEveryMs }: { kind: DueKind; lookAtAllEveryMs: number },
): ReadDue {
  let soon: Deliveries[] = [];
  let lookedAtMs = -Infinity;
  /** Of the other days; `read` is that of the list. A delivery that begins to wait during the look may not be in it. */
  const version = { current: 0, read: 0 };
  const readDay = createReadDuePage<Found>(kind);
  const findSoon = async (untilMs: number): Promise<Deliveries[]> => {
    const all = days.within(days.kept({}, 'dlv'));
    const next = await readAll(all, (each) => longestDue(kind, each as never, untilMs, 1));
    return all.filter((_, index) => next[index]?.length === 1);
  };
  return {
    lookAtAllDays() {
      version.current += 1;
    },
    async due(nowMs, limit) {
      const near = days.within({
        fromId: firstIdAt('dlv', nowMs - NEAR_MS.before),
        beforeId: firstIdAt('dlv', nowMs + NEAR_MS.after),
      });
      if (Math.abs(nowMs - lookedAtMs) >= lookAtAllEveryMs || version.read !== version.current) {
        const { current } = version;
        soon = await findSoon(nowMs + lookAtAllEveryMs);
        lookedAtMs = nowMs;
        version.read = current;
      }
      const nearNames = new Set(near.map(({ collectionName }) => collectionName));
      const others = soon.filter(({ collectionName }) => !nearNames.has(collectionName));
      const found = await readAll([...others, ...near], (each) => readDay(each, nowMs, limit));
      return found.flat().map(toWaiting);
    },
  };
}

const BY_TIME: DueKind = {
  filter: TIMED,
  at: 'nextAttemptAt',
  key: DUE_KEY,
  ofCompanyKey: TIMED_OF_COMPANY_KEY,
  without: { attempts: 0 },
};

const BY_EXPIRY: DueKind = {
  filter: EXPIRING,
  at: 'expiresAt',
  key: EXPIRING_KEY,
  ofCompanyKey: EXPIRING_OF_COMPANY_KEY,
  without: { attempts: 0 },
};

/** An announcement of `lookAtAllDays` may be lost. */
const DUE = { kind: BY_TIME, lookAtAllEveryMs: 60_000 };
/** Nobody announces that an old delivery is put on hold, whose message expires within seconds (docs/contract.md, C7.15). */
const EXPIRED = { kind: BY_EXPIRY, lookAtAllEveryMs: 10_000 };

async function look(
  deliveries: DeliveryDays,
  released: readonly WaitingDelivery[],
): Promise<SeenReleased> {
  const ids = released.map(({ id }) => id);
  const attempts = new Map(released.map(({ id, attemptCount }) => [id, attemptCount]));
  const found = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay }, status: 'pending' })
      .project<Pick<Found, '_id' | 'attemptCount' | 'waiting'>>({ attemptCount: 1, waiting: 1 })
      .toArray(),
  );
  const left = found.filter(({ _id, attemptCount }) => attempts.get(_id) === attemptCount);
  const idsOf = (some: typeof left): Set<string> => new Set(some.map(({ _id }) => _id));
  return {
    open: idsOf(left.filter(({ waiting }) => waiting === undefined)),
    heldAgain: idsOf(left.filter(({ waiting }) => waiting !== undefined)),
  };
}

interface WaitingPage {
  fromId: string;
  limit: number;
  filter: typeof ON_HOLD | typeof TO_CANCEL;
}

async function readPage(
  deliveries: DeliveryDays,
  { companyId, webhookId }: WaitingOwner,
  { fromId, limit, filter }: WaitingPage,
): Promise<WaitingDelivery[]> {
  const span = deliveries.kept({ fromId }, 'dlv');
  const found = await readUpTo(deliveries.within(span), limit, (documents, left) => {
    const own = documentsIn<'deliveries'>(documents, companyId);
    const waiting = own.find({ ...filter, webhookId, _id: { $gte: span.fromId } });
    return waiting.sort({ _id: 1 }).limit(left).project<Found>({ attempts: 0 }).toArray();
  });
  return found.map(toWaiting);
}

async function readUnderWay(
  deliveries: DeliveryDays,
  { companyId, webhookId }: WaitingOwner,
  { beforeId, limit }: UnderWay,
): Promise<WaitingDelivery[]> {
  // Most have so many in a day. Two days cost two queries at once.
  const fromId = firstIdAt('dlv', timeMsOf(beforeId) - DAY_MS);
  const days = deliveries.within(deliveries.kept({ fromId, beforeId }, 'dlv')).toReversed();
  const found = await readUpTo(days, limit, (documents, left) => {
    const before = { webhookId, status: 'pending', _id: { $lt: beforeId } } as const;
    const own = documentsIn<'deliveries'>(documents, companyId).find(before);
    return own.sort({ _id: -1 }).limit(left).project<Found>({ attempts: 0 }).toArray();
  });
  // See endWaits. An attempt sets another time for the next one.
  const isReleased = ({ waiting, nextAttemptAt, updatedAt }: Found): boolean =>
    waiting === undefined && nextAttemptAt?.getTime() === updatedAt.getTime();
  return found.filter(isReleased).toReversed().map(toWaiting);
}

/** Returns a waiting delivery from its document, of which the attempts need not be read. */
export function toWaiting(document: Found): WaitingDelivery {
  const { _id, messageId, webhookId, companyId, appId, attemptCount, createdAt } = document;
  const waitingSinceMs = document.waitingSince?.getTime() ?? 0;
  return {
    id: _id,
    messageId,
    webhookId,
    companyId,
    appId,
    attemptCount,
    waitingSinceMs,
    dueAtMs: document.nextAttemptAt?.getTime() ?? waitingSinceMs,
    createdAtMs: createdAt.getTime(),
    ...notStoredOf(document),
    ...lifetimeIn(document.expiresAt, document.removeAt),
    ...orderOf(document),
  };
}

/** One statement for many takes 0.13 ms for each, one for each 0.31 ms (MongoDB 7.0, with the indexes of a day). */
async function endWaits(
  documents: mongo.Collection<DeliveryDocument>,
  page: readonly WaitingDelivery[],
  at: Date,
): Promise<void> {
  // A delivery that has begun to wait again since has another time.
  const read = page.map(({ id, waitingSinceMs }) => [id, new Date(waitingSinceMs)]);
  await documents.updateMany(
    {
      _id: { $in: page.map(({ id }) => id) },
      status: 'pending',
      $expr: { $in: [['$_id', '$waitingSince'], { $literal: read }] },
    },
    { $set: { nextAttemptAt: at, updatedAt: at }, $unset: NOT_WAITING },
  );
}

/** Day by day, oldest first. */
async function* webhooksOf(
  deliveries: DeliveryDays,
  companyId: string,
  webhookIds?: readonly string[],
): AsyncGenerator<WaitingOwner> {
  for (const documents of deliveries.within(deliveries.kept({}, 'dlv'))) {
    yield* webhooksIn(documentsIn<'deliveries'>(documents, companyId), companyId, webhookIds);
  }
}

/** One look-up for each webhook, however many deliveries wait. */
async function* webhooksIn(
  own: CompanyDocuments<'deliveries'>,
  companyId: string,
  webhookIds?: readonly string[],
): AsyncGenerator<WaitingWebhook> {
  for (let webhookId = ''; ;) {
    const after = { $gt: webhookId, ...(webhookIds && { $in: [...webhookIds] }) };
    const found = await firstOf(own.find({ ...ON_HOLD, webhookId: after }).sort({ webhookId: 1 }));
    if (!found) return;
    ({ webhookId } = found);
    yield { companyId, webhookId, firstId: found._id };
  }
}

async function* allWebhooks(deliveries: DeliveryDays): AsyncGenerator<WaitingWebhook> {
  for (const documents of deliveries.within(deliveries.kept({}, 'dlv'))) {
    for (let companyId = ''; ;) {
      const later = documents.find({ ...ON_HOLD, companyId: { $gt: companyId } });
      const found = await firstOf(later.sort({ companyId: 1 }));
      if (!found) break;
      ({ companyId } = found);
      yield* webhooksIn(documentsIn<'deliveries'>(documents, companyId), companyId);
    }
  }
}

type Place = Pick<DeliveryDocument, '_id' | 'companyId' | 'webhookId'>;

async function firstOf(cursor: mongo.FindCursor<DeliveryDocument>): Promise<Place | undefined> {
  return (await placesOf(cursor, 1))[0];
}

async function placesOf(
  cursor: mongo.FindCursor<DeliveryDocument>,
  limit: number,
): Promise<Place[]> {
  const found = cursor.hint(WAITING_KEY).limit(limit);
  return orNone(found.project<Place>({ companyId: 1, webhookId: 1 }).toArray());
}

async function expire(documents: Deliveries, limit: number, nowMs: number): Promise<number> {
  const waiting = { waiting: { $in: [...WAITING] }, status: 'pending' } as const;
  const found = await placesOf(documents.find(waiting), limit);
  if (found.length === 0) return 0;
  const { modifiedCount } = await documents.updateMany(
    { ...waiting, _id: { $in: found.map(({ _id }) => _id) } },
    cancelUpdate(EXPIRED_WHILE_WAITING, nowMs),
  );
  return modifiedCount;
}
