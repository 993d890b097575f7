import { isFinal, type DeliveryState } from '@posthorn/domain/message/delivery.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';

/**
 * Stores a batch. Resolves with the ids of the deliveries whose failure is to be published: those that
 * are still pending after the attempt just recorded. Repeating a batch changes nothing.
 */
export type RecordAttempts = (batch: readonly SettledDelivery[]) => Promise<Set<string>>;

/**
 * A first attempt is one insert. A delivery that is stored already (a later attempt, or a record that
 * is read again after a crash) takes a conditional update. Only when an update does not match are the
 * stored states read.
 */
export function createRecordAttempts(store: DeliveryStore): RecordAttempts {
  return async (batch) => {
    const first = batch.filter(mayBeNew);
    const stored = first.length > 0 ? await store.insertAll(first) : new Set<string>();
    const inserted = first.filter(({ id }) => !stored.has(id));
    const others = batch.filter((settled) => !mayBeNew(settled) || stored.has(settled.id));
    const updated = others.length > 0 ? await updateStored(store, others) : [];
    return new Set([...inserted, ...updated].filter(isFailure).map(({ id }) => id));
  };
}

/** It usually has no document yet: after its first attempt, or cancelled without one. */
function mayBeNew({ attempt }: SettledDelivery): boolean {
  return attempt === null || attempt.number === 1;
}

function isFailure({ status, attempt }: SettledDelivery): boolean {
  return attempt !== null && !isFinal(status);
}

/** Resolves with those whose attempt is the last one recorded now. */
async function updateStored(
  store: DeliveryStore,
  settled: readonly SettledDelivery[],
): Promise<SettledDelivery[]> {
  const cancelled = settled.flatMap(({ id, reason, attempt, updatedAtMs: atMs }) =>
    reason && attempt === null ? [{ id, reason, atMs }] : [],
  );
  if (cancelled.length > 0) await store.cancelPending(cancelled);
  const attempted = settled.filter(({ attempt }) => attempt !== null);
  if (attempted.length === 0) return [];
  const { appended } = await store.appendAttempts(attempted);
  return appended === attempted.length ? attempted : updateUnmatched(store, attempted);
}

/** Some attempts did not match: their delivery has gone on, has ended, or is not stored any more. */
async function updateUnmatched(
  store: DeliveryStore,
  attempted: readonly SettledDelivery[],
): Promise<SettledDelivery[]> {
  const states = await store.statesOf(attempted.map(({ id }) => id));
  const missing = attempted.filter(({ id }) => !states.has(id));
  if (missing.length > 0) await store.insertAll(missing);
  const cancelled = attempted.filter(({ id }) => states.get(id)?.status === 'cancelled');
  if (cancelled.length > 0) await store.appendToCancelled(cancelled);
  const repeatedSuccess = attempted.filter((settled) => {
    const state = states.get(settled.id);
    const isSuccess = settled.status === 'delivered';
    return isSuccess && state !== undefined && isLastRecorded(settled, state);
  });
  if (repeatedSuccess.length > 0) await store.replaceFailures(repeatedSuccess);
  return attempted.filter((settled) => {
    const state = states.get(settled.id);
    return state === undefined || isLastRecorded(settled, state);
  });
}

/**
 * True while the delivery is pending after the attempt of this number, which this process or another
 * recorded: its failure may not have been published.
 */
function isLastRecorded({ attempt }: SettledDelivery, state: DeliveryState): boolean {
  return state.status === 'pending' && state.attemptCount === attempt?.number;
}
