import {
  type Attempt,
  type CancelReason,
  type Cancellation,
  type Delivery,
  type DeliveryState,
  type ExhaustReason,
  type RecordedDelivery,
  withoutResponse,
} from '@posthorn/domain/delivery/delivery.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { Waiting } from '@posthorn/domain/waiting.ts';
import { type InOrder, notStoredOf, orderOf } from '@posthorn/domain/message.ts';
import { ImpossibleError, requiredAt } from '@posthorn/domain/required.ts';
import mongoose, { type mongo } from 'mongoose';
import { DUPLICATE_KEY } from '../connect.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents.ts';
import { lifetimeDates, lifetimeIn } from './messages.ts';

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
  /** Returns how many were pending: another process may have ended the others meanwhile. */
  cancelPending: (cancellations: readonly Cancellation[]) => Promise<{ matched: number }>;
  /** Makes those pending deliveries wait whose attempt of that number (`wait`) is the next one. Returns how many. */
  setWaiting: (deliveries: readonly SettledDelivery[]) => Promise<{ matched: number }>;
  /** Exhausts the delivery if it is pending and has this many attempts. Returns true when this call did. */
  exhaust: (exhausted: Exhaustion) => Promise<boolean>;
  /** By id, what a majority has stored. Deliveries that are not stored are missing. */
  statesOf: (ids: readonly string[]) => Promise<Map<string, DeliveryState>>;
  /** By id, what a majority has stored. Deliveries that are not stored are missing. */
  recordedOf: (ids: readonly string[]) => Promise<Map<string, RecordedDelivery>>;
}

/** The end of a delivery after its last attempt. */
export interface Exhaustion {
  /** The delivery's id. */
  id: string;
  attemptCount: number;
  /** Null when all of its attempts were made. */
  reason: ExhaustReason | null;
  /** Milliseconds since 1970. */
  atMs: number;
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
      return { matched: await update(deliveries, batch, cancellationOf) };
    },
    async setWaiting(batch) {
      return { matched: await update(deliveries, batch, waitOf) };
    },
    async exhaust({ id: _id, attemptCount, reason, atMs }) {
      const updatedAt = new Date(atMs);
      const { matchedCount } = await deliveries
        .of(_id)
        .updateOne(
          { _id, status: 'pending', attemptCount },
          { $set: { status: 'exhausted', reason, nextAttemptAt: null, updatedAt } },
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

/** Returns those of these deliveries that have a document: with the ids alone the server reads the index and nothing else. */
export async function recordedAmong(
  { deliveries }: Pick<Days, 'deliveries'>,
  ids: readonly string[],
): Promise<Set<string>> {
  const recorded = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  return new Set(recorded.map(({ _id }) => _id));
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
  return {
    updateOne: {
      filter: { _id, status: 'pending' },
      update: cancelUpdate(reason, atMs),
    },
  };
}

/** The update of a pending delivery that is cancelled. */
export function cancelUpdate(
  reason: CancelReason,
  atMs: number,
): mongo.UpdateFilter<DeliveryDocument> {
  return {
    $set: { status: 'cancelled', reason, nextAttemptAt: null, updatedAt: new Date(atMs) },
    $unset: NOT_WAITING,
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
        $set: { status, reason, attemptCount, nextAttemptAt, updatedAt, ...placeOf(settled) },
        $unset: NOT_WAITING,
      },
    },
  };
}

/** Its document may be older than its place, as that of a replay. */
export function placeOf(settled: SettledDelivery): InOrder {
  return settled.position === undefined ? {} : orderOf(settled);
}

/** For the `$unset` of what moves a delivery on: only one without an attempt under way waits. */
export const NOT_WAITING = { waiting: '', waitingSince: '' } as const;

function waitOf(settled: SettledDelivery): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const { _id, attemptCount, nextAttemptAt, updatedAt, waiting, waitingSince } =
    toDocument(settled);
  if (!waiting || !waitingSince) throw new ImpossibleError(`delivery ${_id} does not wait`);
  return {
    updateOne: {
      filter: { _id, status: 'pending', attemptCount },
      update: {
        $set: { nextAttemptAt, updatedAt, waiting, waitingSince, ...placeOf(settled) },
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
        $unset: NOT_WAITING,
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

export function toDocument(settled: SettledDelivery): DeliveryDocument {
  const {
    id,
    attempt,
    wait,
    createdAtMs,
    updatedAtMs,
    nextAttemptAtMs,
    expiresAtMs,
    removeAtMs,
    ...rest
  } = settled;
  const updatedAt = new Date(updatedAtMs);
  const document: DeliveryDocument = {
    _id: id,
    ...rest,
    ...lifetimeDates(expiresAtMs, removeAtMs),
    attemptCount: attempt?.number ?? 0,
    attempts: attempt ? [toAttemptDocument(attempt)] : [],
    nextAttemptAt: nextAttemptAtMs === null ? null : new Date(nextAttemptAtMs),
    createdAt: new Date(createdAtMs),
    updatedAt,
  };
  if (!wait) return document;
  const { waiting, attemptNumber } = wait;
  return { ...document, attemptCount: attemptNumber - 1, waiting, waitingSince: updatedAt };
}

export function toAttemptDocument({ startedAtMs, ...rest }: Attempt): AttemptDocument {
  return { ...rest, startedAt: new Date(startedAtMs) };
}

export function toDelivery(document: DeliveryDocument): Delivery {
  const { _id, createdAt, updatedAt, omitsResponses } = document;
  const attempts = document.attempts.map(toAttempt);
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
    // An attempt that was under way while the responses were erased may still have its own.
    attempts: omitsResponses ? attempts.map(withoutResponse) : attempts,
    ...planOf(document),
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
    ...notStoredOf(document),
    ...lifetimeIn(document.expiresAt, document.removeAt),
    ...orderOf(document),
  };
}

type PlanDocument = Pick<DeliveryDocument, 'status' | 'nextAttemptAt' | 'waiting' | 'waitingSince'>;

/** When the next attempt is planned, or why the delivery waits without one. */
export function planOf(
  document: PlanDocument,
): Pick<Delivery, 'nextAttemptAtMs' | 'waiting' | 'waitingSinceMs'> {
  const waiting = waitingOf(document);
  return {
    nextAttemptAtMs:
      waiting === 'hold' || waiting === 'order'
        ? null
        : (document.nextAttemptAt?.getTime() ?? null),
    waiting,
    waitingSinceMs: waiting === null ? null : (document.waitingSince?.getTime() ?? null),
  };
}

function waitingOf({ status, waiting }: PlanDocument): Waiting | null {
  return status === 'pending' ? (waiting ?? null) : null;
}

function toAttempt({ startedAt, ...attempt }: AttemptDocument): Attempt {
  return { ...attempt, startedAtMs: startedAt.getTime() };
}
