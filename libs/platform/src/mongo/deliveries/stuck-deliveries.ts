import type { StuckDelivery } from '@posthorn/domain/delivery/stuck-delivery.ts';
import type { mongo } from 'mongoose';
import type { Database } from '../days/days.ts';
import { readAll, readByIds, readUpTo, writeByDays } from '../days/read-days.ts';
import { toDelivery } from './delivery-documents.ts';
import type { DeliveryDocument } from '../documents/documents.ts';

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
