import type { Delivery, DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { StuckDelivery } from '@posthorn/domain/delivery/stuck-delivery.ts';
import type { mongo } from 'mongoose';
import { type CompanyDocuments, documentsIn } from '../company-documents.ts';
import type { Database, Days } from '../days/days.ts';
import { countUpTo, readAll, readByIds, readUpTo, writeByDays } from '../days/read-days.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents.ts';
import { toDelivery } from './deliveries.ts';

/** A delivery as lists show it, without its attempts. */
export interface DeliveryOutline {
  id: string;
  webhookId: string;
  status: DeliveryStatus;
  attemptCount: number;
  updatedAtMs: number;
}

export interface FailureFilter {
  status: 'exhausted' | 'cancelled';
  /** Bounds of the message's id: `fromId` is inclusive, `beforeId` is exclusive. */
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** What statistics need of an attempt, without the response. */
export type AttemptFigures = Pick<AttemptDocument, 'outcome' | 'durationMs' | 'startedAt'>;

/** What statistics need of a delivery. */
export interface DeliveryFigures {
  status: DeliveryStatus;
  attempts: AttemptFigures[];
}

/** The API's queries about the deliveries of one company. A delivery that is not recorded yet is not found. */
export interface DeliveryQueries {
  findMany: (companyId: string, ids: readonly string[]) => Promise<Delivery[]>;
  outlinesOf: (companyId: string, ids: readonly string[]) => Promise<DeliveryOutline[]>;
  /** Of each delivery that is recorded. */
  figuresOf: (companyId: string, ids: readonly string[]) => Promise<DeliveryFigures[]>;
  /** The message ids of failed deliveries, newest first; an id comes once for each of its failures. */
  messagesOfFailed: (companyId: string, filter: FailureFilter, limit: number) => Promise<string[]>;
  /** How many deliveries of the webhook are pending, without `exceptIds`; counts up to `limit`. */
  countPending: (
    companyId: string,
    webhookId: string,
    exceptIds: readonly string[],
    limit: number,
  ) => Promise<number>;
}

type OutlineDocument = Pick<
  DeliveryDocument,
  '_id' | 'webhookId' | 'status' | 'attemptCount' | 'updatedAt'
>;

const OUTLINE = { webhookId: 1, status: 1, attemptCount: 1, updatedAt: 1 } as const;

const FIGURES = {
  _id: 0,
  status: 1,
  'attempts.outcome': 1,
  'attempts.durationMs': 1,
  'attempts.startedAt': 1,
} as const;

/** 0.4 MB of the 16 MB that a query may have. A page of messages to 1,000 webhooks each has 500,000 ids. */
const MAX_IDS = 10_000;

export function createDeliveryQueries({
  days: { deliveries },
}: Pick<Database, 'days'>): DeliveryQueries {
  /** Reads the deliveries of these ids that belong to the company and have not expired. */
  const read = async <Found>(
    companyId: string,
    ids: readonly string[],
    find: (own: CompanyDocuments<'deliveries'>, wanted: Wanted) => Promise<Found[]>,
  ): Promise<Found[]> =>
    readByIds(deliveries, ids.filter(deliveries.isKept), (documents, ofDay) =>
      find(documentsIn<'deliveries'>(documents, companyId), { _id: { $in: ofDay } }),
    );
  return {
    findMany: (companyId, ids) =>
      read(companyId, ids, async (own, wanted) =>
        (await own.find(wanted).toArray()).map(toDelivery),
      ),
    async outlinesOf(companyId, ids) {
      const found: DeliveryOutline[] = [];
      for (let from = 0; from < ids.length; from += MAX_IDS) {
        const some = ids.slice(from, from + MAX_IDS);
        const page = await read(companyId, some, (own, wanted) =>
          own.find(wanted).project<OutlineDocument>(OUTLINE).toArray(),
        );
        found.push(...page.map(toOutline));
      }
      return found;
    },
    figuresOf: (companyId, ids) =>
      read(companyId, ids, (own, wanted) =>
        own.find(wanted).project<DeliveryFigures>(FIGURES).toArray(),
      ),
    async messagesOfFailed(companyId, filter, limit) {
      const span = deliveries.kept(filter, 'msg');
      const newestFirst = deliveries.within(span).reverse();
      const page = await readUpTo(newestFirst, limit, (documents, left) => {
        const own = documentsIn<'deliveries'>(documents, companyId);
        const found = own.find(failedFilter({ ...filter, ...span })).sort({ messageId: -1 });
        return found.limit(left).project<{ messageId: string }>({ messageId: 1 }).toArray();
      });
      return page.map(({ messageId }) => messageId);
    },
    countPending: countPendingIn(deliveries),
  };
}

function countPendingIn(deliveries: Days['deliveries']): DeliveryQueries['countPending'] {
  return async (companyId, webhookId, exceptIds, limit) => {
    const span = deliveries.kept({}, 'dlv');
    const _id = { $nin: [...exceptIds], $gte: span.fromId };
    const filter = { webhookId, status: 'pending', _id } as const;
    const { sum } = await countUpTo(deliveries.within(span), limit, (documents, left) =>
      documentsIn<'deliveries'>(documents, companyId).count(filter, { limit: left }),
    );
    return sum;
  };
}

interface Wanted {
  _id: { $in: string[] };
}

function failedFilter({ status, fromId, beforeId }: FailureFilter) {
  const range = { ...(fromId && { $gte: fromId }), ...(beforeId && { $lt: beforeId }) };
  return { status, ...(Object.keys(range).length > 0 && { messageId: range }) };
}

function toOutline({ _id, webhookId, status, attemptCount, updatedAt }: OutlineDocument) {
  return { id: _id, webhookId, status, attemptCount, updatedAtMs: updatedAt.getTime() };
}

/** Finds stuck deliveries for the sweep. Times are in milliseconds since 1970. */
export interface StuckDeliveries {
  /** Pending deliveries whose next attempt was due before `beforeMs`, the longest overdue first. */
  findOverdue: (beforeMs: number, limit: number) => Promise<StuckDelivery[]>;
  /** Pending deliveries without a next attempt that have not changed since `beforeMs`. */
  findUnended: (beforeMs: number, limit: number) => Promise<StuckDelivery[]>;
  /**
   * Makes the deliveries due at `atMs`, so that the next sweep finds them only if they stay stuck for
   * as long again. Leaves those alone that have moved on since they were found.
   */
  markSwept: (deliveries: readonly StuckDelivery[], atMs: number) => Promise<void>;
}

export function createStuckDeliveries({
  days: { deliveries },
}: Pick<Database, 'days'>): StuckDeliveries {
  const newest = { attempts: { $slice: -1 } };
  /** What has expired is not started again, although its day is still there. */
  const pending = () => {
    const span = deliveries.kept({}, 'dlv');
    const filter = { status: 'pending', _id: { $gte: span.fromId } } as const;
    return { filter, days: deliveries.within(span) };
  };
  return {
    async findOverdue(beforeMs, limit) {
      const { filter, days } = pending();
      const overdue = { ...filter, nextAttemptAt: { $lt: new Date(beforeMs) } };
      // Every day may have as many, and only the longest overdue of all are read whole.
      const due = await readAll(days, (documents) => {
        const longestFirst = documents.find(overdue).sort({ nextAttemptAt: 1 }).limit(limit);
        return longestFirst.project<Due>({ nextAttemptAt: 1 }).toArray();
      });
      const chosen = due.flat().sort(byDue).slice(0, limit);
      const ids = chosen.map(({ _id }) => _id);
      const found = await readByIds(deliveries, ids, (documents, ofDay) =>
        documents
          .find({ ...overdue, _id: { $in: ofDay } })
          .project<Due & DeliveryDocument>(newest)
          .toArray(),
      );
      return found.sort(byDue).map(toDelivery);
    },
    async findUnended(beforeMs, limit) {
      const { filter, days } = pending();
      const unended = { ...filter, nextAttemptAt: null, updatedAt: { $lt: new Date(beforeMs) } };
      const found = await readUpTo(days, limit, (documents, left) =>
        documents.find(unended).project<DeliveryDocument>(newest).limit(left).toArray(),
      );
      return found.map(toDelivery);
    },
    async markSwept(swept, atMs) {
      const at = new Date(atMs);
      const idOf = ({ id }: StuckDelivery): string => id;
      await writeByDays(deliveries, swept, idOf, async (documents, ofDay) => {
        const marks = ofDay.map((each) => markOf(each, at));
        await documents.bulkWrite(marks, { ordered: false });
      });
    },
  };
}

interface Due {
  _id: string;
  nextAttemptAt: Date;
}

const byDue = (a: Due, b: Due): number => a.nextAttemptAt.getTime() - b.nextAttemptAt.getTime();

function markOf(
  { id: _id, attemptCount, nextAttemptAtMs }: StuckDelivery,
  at: Date,
): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const nextAttemptAt = nextAttemptAtMs === null ? null : at;
  return {
    updateOne: {
      filter: { _id, status: 'pending', attemptCount },
      update: { $set: { nextAttemptAt, updatedAt: at } },
    },
  };
}
