import type { Attempt, CancelReason } from '@posthorn/domain/delivery.ts';
import mongoose, { type mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { toAttempt, toDocument, type SettledDelivery } from './delivery-documents.ts';
import type { DeliveryDocument } from '../documents.ts';
import { DUPLICATE_KEY } from '../duplicate-key.ts';

export type { SettledDelivery } from './delivery-documents.ts';

/** What a step needs to know of a delivery before it acts. */
export type DeliveryState = Pick<DeliveryDocument, 'status' | 'attemptCount'>;

/** What is recorded of a delivery, with its newest attempt; null when there was none. */
export type RecordedDelivery = DeliveryState & { lastAttempt: Attempt | null };

export interface Cancellation {
  id: string;
  reason: CancelReason;
  atMs: number;
}

export interface DeliveryStore {
  /** Inserts what is not there yet; answers the ids that were. */
  insertAll: (deliveries: readonly SettledDelivery[]) => Promise<Set<string>>;
  /** Appends each attempt to a pending delivery that has fewer attempts; touches nothing else. */
  appendAttempts: (deliveries: readonly SettledDelivery[]) => Promise<{ appended: number }>;
  /**
   * Appends attempts that were under way when their delivery was cancelled: what was sent stays
   * readable, and a success still counts.
   */
  appendToCancelled: (deliveries: readonly SettledDelivery[]) => Promise<void>;
  /** A success made twice at once counts: it replaces the failure recorded under the same number. */
  replaceFailures: (deliveries: readonly SettledDelivery[]) => Promise<void>;
  cancelPending: (cancellations: readonly Cancellation[]) => Promise<void>;
  /** Ends a pending delivery whose last attempt was `attemptCount`; true when it is exhausted now. */
  exhaust: (id: string, attemptCount: number, atMs: number) => Promise<boolean>;
  statesOf: (ids: readonly string[]) => Promise<Map<string, DeliveryState>>;
  recordedOf: (ids: readonly string[]) => Promise<Map<string, RecordedDelivery>>;
}

export function createDeliveryStore(db: mongo.Db): DeliveryStore {
  const deliveries = collection(db, 'deliveries');
  const write = (operations: mongo.AnyBulkWriteOperation<DeliveryDocument>[]) =>
    deliveries.bulkWrite(operations, { ordered: false });

  return {
    async insertAll(batch) {
      try {
        await deliveries.insertMany(batch.map(toDocument), { ordered: false });
        return new Set();
      } catch (error) {
        return duplicateIds(error, batch);
      }
    },
    async appendAttempts(batch) {
      const { matchedCount } = await write(batch.map(appendOf));
      return { appended: matchedCount };
    },
    async appendToCancelled(batch) {
      await write(batch.map(lateAppendOf));
    },
    async replaceFailures(batch) {
      await write(batch.map(replacementOf));
    },
    async cancelPending(batch) {
      await write(batch.map(cancellationOf));
    },
    async exhaust(_id, attemptCount, atMs) {
      const { matchedCount } = await deliveries.updateOne(
        { _id, status: 'pending', attemptCount },
        { $set: { status: 'exhausted', nextAttemptAt: null, updatedAt: new Date(atMs) } },
      );
      return matchedCount === 1;
    },
    statesOf: (ids) => readStates(deliveries, ids),
    recordedOf: (ids) => readRecorded(deliveries, ids),
  };
}

async function readStates(
  deliveries: mongo.Collection<DeliveryDocument>,
  ids: readonly string[],
): Promise<Map<string, DeliveryState>> {
  const found = await deliveries
    .find({ _id: { $in: [...ids] } })
    .project<DeliveryState & { _id: string }>({ status: 1, attemptCount: 1 })
    .toArray();
  return new Map(found.map(({ _id, ...state }) => [_id, state]));
}

async function readRecorded(
  deliveries: mongo.Collection<DeliveryDocument>,
  ids: readonly string[],
): Promise<Map<string, RecordedDelivery>> {
  const found = await deliveries
    .find({ _id: { $in: [...ids] } })
    .project<DeliveryDocument>({ status: 1, attemptCount: 1, attempts: { $slice: -1 } })
    .toArray();
  return new Map(
    found.map(({ _id, status, attemptCount, attempts: [last] }) => [
      _id,
      { status, attemptCount, lastAttempt: last ? toAttempt(last) : null },
    ]),
  );
}

function cancellationOf({
  id: _id,
  reason,
  atMs,
}: Cancellation): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const updatedAt = new Date(atMs);
  return {
    updateOne: {
      filter: { _id, status: 'pending' },
      update: { $set: { status: 'cancelled', reason, nextAttemptAt: null, updatedAt } },
    },
  };
}

function appendOf(settled: SettledDelivery): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const { _id, status, reason, attemptCount, attempts, nextAttemptAt, updatedAt } =
    toDocument(settled);
  return {
    updateOne: {
      filter: { _id, status: 'pending', attemptCount: { $lt: attemptCount } },
      update: {
        $push: { attempts: { $each: attempts } },
        $set: { status, reason, attemptCount, nextAttemptAt, updatedAt },
      },
    },
  };
}

function lateAppendOf(settled: SettledDelivery): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const { _id, status, attemptCount, attempts, updatedAt } = toDocument(settled);
  return {
    updateOne: {
      filter: { _id, status: 'cancelled', attemptCount: { $lt: attemptCount } },
      update: {
        $push: { attempts: { $each: attempts } },
        $set: { attemptCount, updatedAt, ...(status === 'delivered' && { status, reason: null }) },
      },
    },
  };
}

function replacementOf(settled: SettledDelivery): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const { _id, status, attemptCount, attempts, nextAttemptAt, updatedAt } = toDocument(settled);
  return {
    updateOne: {
      filter: { _id, status: 'pending', attemptCount },
      update: {
        $set: { status, nextAttemptAt, updatedAt, 'attempts.$[same]': attempts[0] },
      },
      arrayFilters: [{ 'same.number': attemptCount }],
    },
  };
}

/** Throws unless every refusal is a duplicate `_id`: a redelivered record, not a fault. */
function duplicateIds(error: unknown, batch: readonly SettledDelivery[]): Set<string> {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
  const { writeErrors, result } = error;
  const list = [writeErrors].flat();
  // The driver wraps "nobody answered" in the same error, with an empty list: nothing is known then.
  const isAnswered = list.length > 0 && !result.getWriteConcernError();
  if (!isAnswered || list.some(({ code }) => code !== DUPLICATE_KEY)) throw error;
  return new Set(list.map(({ index }) => batch[index]?.id ?? ''));
}
