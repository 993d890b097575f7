import type { StuckDelivery } from '@posthorn/domain/delivery-lifecycle/stuck-delivery.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { toDelivery } from './delivery-documents.ts';
import type { DeliveryDocument } from '../documents.ts';

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

export function createStuckDeliveries(db: mongo.Db): StuckDeliveries {
  const deliveries = collection(db, 'deliveries');
  const newest = { attempts: { $slice: -1 } };
  return {
    async findOverdue(beforeMs, limit) {
      const overdue = { status: 'pending', nextAttemptAt: { $lt: new Date(beforeMs) } } as const;
      const found = deliveries.find(overdue).project<DeliveryDocument>(newest);
      return (await found.sort({ nextAttemptAt: 1 }).limit(limit).toArray()).map(toDelivery);
    },
    async findUnended(beforeMs, limit) {
      const updatedAt = { $lt: new Date(beforeMs) };
      const unended = { status: 'pending', nextAttemptAt: null, updatedAt } as const;
      const found = deliveries.find(unended).project<DeliveryDocument>(newest);
      return (await found.limit(limit).toArray()).map(toDelivery);
    },
    async markSwept(swept, atMs) {
      const at = new Date(atMs);
      await deliveries.bulkWrite(
        swept.map((each) => markOf(each, at)),
        { ordered: false },
      );
    },
  };
}

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
