import type {
  Attempt,
  Cancellation,
  Delivery,
  DeliveryState,
  RecordedDelivery,
} from '@posthorn/domain/delivery/delivery.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { notStoredOf } from '@posthorn/domain/message.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import mongoose, { type mongo } from 'mongoose';
import { DUPLICATE_KEY } from '../connect.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents.ts';

/** Records deliveries. A write changes a delivery only from the state that it names, so repeating it is harmless. */
export interface DeliveryStore {
  /** Inserts the deliveries that are not stored. Returns the ids of those that were. */
  insertAll: (deliveries: readonly SettledDelivery[]) => Promise<Set<string>>;
  /** Appends each attempt to its delivery if that is pending and has fewer attempts. Returns how many it appended. */
  appendAttempts: (deliveries: readonly SettledDelivery[]) => Promise<{ appended: number }>;
  /**
   * Appends attempts that were made while their delivery was cancelled. The attempt stays readable,
   * and a success makes the delivery delivered.
   */
  appendToCancelled: (deliveries: readonly SettledDelivery[]) => Promise<void>;
  /** Replaces the last failure of a pending delivery by the attempt of the same number, which succeeded. */
  replaceFailures: (deliveries: readonly SettledDelivery[]) => Promise<void>;
  cancelPending: (cancellations: readonly Cancellation[]) => Promise<void>;
  /** Exhausts a pending delivery that has this many attempts. Returns true when this call did. */
  exhaust: (id: string, attemptCount: number, atMs: number) => Promise<boolean>;
  /** By id, what a majority has stored. Deliveries that are not stored are missing. */
  statesOf: (ids: readonly string[]) => Promise<Map<string, DeliveryState>>;
  /** By id, what a majority has stored. Deliveries that are not stored are missing. */
  recordedOf: (ids: readonly string[]) => Promise<Map<string, RecordedDelivery>>;
}

/**
 * For reads that decide whether an attempt is dropped. What only the primary has may be rolled back: the
 * attempt would be dropped for a record that is gone.
 */
const DECIDED = { readConcern: { level: 'majority' } } as const;

export function createDeliveryStore({
  days: { deliveries },
}: Pick<Database, 'days'>): DeliveryStore {
  return {
    async insertAll(batch) {
      const stored = await writeByDays(deliveries, batch, idOf, insertNew);
      return new Set(stored.flatMap((ids) => [...ids]));
    },
    async appendAttempts(batch) {
      return { appended: await update(deliveries, batch, appendOf) };
    },
    async appendToCancelled(batch) {
      await update(deliveries, batch, lateAppendOf);
    },
    async replaceFailures(batch) {
      await update(deliveries, batch, replacementOf);
    },
    async cancelPending(batch) {
      await update(deliveries, batch, cancellationOf);
    },
    async exhaust(_id, attemptCount, atMs) {
      const { matchedCount } = await deliveries
        .of(_id)
        .updateOne(
          { _id, status: 'pending', attemptCount },
          { $set: { status: 'exhausted', nextAttemptAt: null, updatedAt: new Date(atMs) } },
        );
      return matchedCount === 1;
    },
    statesOf: (ids) => readStates(deliveries, ids),
    recordedOf: (ids) => readRecorded(deliveries, ids),
  };
}

type Deliveries = mongo.Collection<DeliveryDocument>;

const idOf = ({ id }: { id: string }): string => id;

/** Returns the ids of those that were stored already. */
async function insertNew(
  deliveries: Deliveries,
  batch: readonly SettledDelivery[],
): Promise<Set<string>> {
  try {
    await deliveries.insertMany(batch.map(toDocument), { ordered: false });
    return new Set();
  } catch (error) {
    return duplicateIds(error, batch);
  }
}

/** Returns how many of them were in the state that their update names. */
async function update<Item extends { id: string }>(
  deliveries: Days['deliveries'],
  batch: readonly Item[],
  updateOf: (item: Item) => mongo.AnyBulkWriteOperation<DeliveryDocument>,
): Promise<number> {
  const matched = await writeByDays(deliveries, batch, idOf, async (documents, ofDay) => {
    const { matchedCount } = await documents.bulkWrite(ofDay.map(updateOf), { ordered: false });
    return matchedCount;
  });
  return matched.reduce((sum, each) => sum + each, 0);
}

async function readStates(
  deliveries: Days['deliveries'],
  ids: readonly string[],
): Promise<Map<string, DeliveryState>> {
  const found = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } }, DECIDED)
      .project<DeliveryState & { _id: string }>({ status: 1, attemptCount: 1 })
      .toArray(),
  );
  return new Map(found.map(({ _id, ...state }) => [_id, state]));
}

async function readRecorded(
  deliveries: Days['deliveries'],
  ids: readonly string[],
): Promise<Map<string, RecordedDelivery>> {
  const found = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } }, DECIDED)
      .project<DeliveryDocument>({ status: 1, attemptCount: 1, attempts: { $slice: -1 } })
      .toArray(),
  );
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

/** Rethrows the error unless every write was refused as a duplicate `_id`: a record read twice. */
function duplicateIds(error: unknown, batch: readonly SettledDelivery[]): Set<string> {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
  const { writeErrors, result } = error;
  const list = [writeErrors].flat();
  // The driver throws the same error with an empty list when the server did not respond.
  const isAnswered = list.length > 0 && !result.getWriteConcernError();
  if (!isAnswered || list.some(({ code }) => code !== DUPLICATE_KEY)) throw error;
  return new Set(list.map(({ index }) => requiredAt(batch, index, 'delivery of the batch').id));
}

/** Translates between deliveries and their documents, in which times are dates. */

function toDocument(settled: SettledDelivery): DeliveryDocument {
  const { id, attempt, createdAtMs, updatedAtMs, nextAttemptAtMs, ...rest } = settled;
  return {
    _id: id,
    ...rest,
    attemptCount: attempt?.number ?? 0,
    attempts: attempt ? [toAttemptDocument(attempt)] : [],
    nextAttemptAt: nextAttemptAtMs === null ? null : new Date(nextAttemptAtMs),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

export function toAttemptDocument({ startedAtMs, ...rest }: Attempt): AttemptDocument {
  return { ...rest, startedAt: new Date(startedAtMs) };
}

export function toDelivery(document: DeliveryDocument): Delivery {
  const { _id, attempts, nextAttemptAt, createdAt, updatedAt } = document;
  const { messageId, webhookId, companyId, appId, status, reason, attemptCount } = document;
  return {
    id: _id,
    messageId,
    webhookId,
    companyId,
    appId,
    status,
    reason,
    attemptCount,
    attempts: attempts.map(toAttempt),
    nextAttemptAtMs: nextAttemptAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
    ...notStoredOf(document),
  };
}

function toAttempt({ startedAt, ...attempt }: AttemptDocument): Attempt {
  return { ...attempt, startedAtMs: startedAt.getTime() };
}
