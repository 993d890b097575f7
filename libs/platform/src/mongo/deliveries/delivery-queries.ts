import type { Attempt, Delivery, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import type { mongo } from 'mongoose';
import { documentsOf } from '../company-documents.ts';
import { toDelivery } from './delivery-documents.ts';
import type { DeliveryDocument } from '../documents.ts';

/** A delivery as lists show it, without what its attempts were answered. */
export interface DeliveryOutline {
  id: string;
  webhookId: string;
  status: DeliveryStatus;
  attemptCount: number;
  updatedAtMs: number;
}

export interface FailureFilter {
  status: 'exhausted' | 'cancelled';
  /** Bounds of the message's id: `fromId` is included, `beforeId` is not. */
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** Of an attempt what figures are made of, without what was answered. */
export type AttemptFigures = Pick<Attempt, 'outcome' | 'durationMs'>;

/** What the API asks about the deliveries of one company. Deliveries without a document are not seen here. */
export interface DeliveryQueries {
  findMany: (companyId: string, ids: readonly string[]) => Promise<Delivery[]>;
  outlinesOf: (companyId: string, ids: readonly string[]) => Promise<DeliveryOutline[]>;
  /** The attempts of each delivery that has a document. */
  attemptFiguresOf: (companyId: string, ids: readonly string[]) => Promise<AttemptFigures[][]>;
  /** The messages of failed deliveries, newest first; a message comes once for each of its failures. */
  messagesOfFailed: (companyId: string, filter: FailureFilter, limit: number) => Promise<string[]>;
  /** How many deliveries of the webhook wait for a retry; counts no further than `limit`. */
  countPending: (companyId: string, webhookId: string, limit: number) => Promise<number>;
}

type OutlineDocument = Pick<
  DeliveryDocument,
  '_id' | 'webhookId' | 'status' | 'attemptCount' | 'updatedAt'
>;

const OUTLINE = { webhookId: 1, status: 1, attemptCount: 1, updatedAt: 1 } as const;

const FIGURES = { 'attempts.outcome': 1, 'attempts.durationMs': 1 } as const;

/** 0.4 MB of a query, which may have 16: a page of messages to a thousand webhooks each has 500,000. */
const MAX_IDS = 10_000;

export function createDeliveryQueries(db: mongo.Db): DeliveryQueries {
  const own = (companyId: string) => documentsOf(db, 'deliveries', companyId);
  return {
    async findMany(companyId, ids) {
      const found = own(companyId).find({ _id: { $in: [...ids] } });
      return (await found.toArray()).map(toDelivery);
    },
    async outlinesOf(companyId, ids) {
      const found: DeliveryOutline[] = [];
      for (let from = 0; from < ids.length; from += MAX_IDS) {
        const some = own(companyId).find({ _id: { $in: ids.slice(from, from + MAX_IDS) } });
        const page = await some.project<OutlineDocument>(OUTLINE).toArray();
        found.push(...page.map(toOutline));
      }
      return found;
    },
    async attemptFiguresOf(companyId, ids) {
      const found = own(companyId).find({ _id: { $in: [...ids] } });
      const page = await found.project<{ attempts: AttemptFigures[] }>(FIGURES).toArray();
      return page.map(({ attempts }) => attempts);
    },
    async messagesOfFailed(companyId, filter, limit) {
      const found = own(companyId).find(failedFilter(filter)).sort({ messageId: -1 }).limit(limit);
      const page = await found.project<{ messageId: string }>({ messageId: 1 }).toArray();
      return page.map(({ messageId }) => messageId);
    },
    countPending: (companyId, webhookId, limit) =>
      own(companyId).count({ webhookId, status: 'pending' }, { limit }),
  };
}

function failedFilter({ status, fromId, beforeId }: FailureFilter) {
  const range = { ...(fromId && { $gte: fromId }), ...(beforeId && { $lt: beforeId }) };
  return { status, ...(Object.keys(range).length > 0 && { messageId: range }) };
}

function toOutline({ _id, webhookId, status, attemptCount, updatedAt }: OutlineDocument) {
  return { id: _id, webhookId, status, attemptCount, updatedAtMs: updatedAt.getTime() };
}
