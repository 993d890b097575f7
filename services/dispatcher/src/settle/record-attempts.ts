import { isFinal } from '@posthorn/domain/delivery.ts';
import type {
  DeliveryState,
  DeliveryStore,
  SettledDelivery,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';

/**
 * Writes a batch and answers the ids of the deliveries that are unfinished after the attempt just
 * recorded, so that their failure must be published. Repeating a batch changes nothing.
 */
export type RecordAttempts = (batch: readonly SettledDelivery[]) => Promise<Set<string>>;

/**
 * The good path is one insert. What is there already (a later attempt, or a record read twice after
 * a crash) takes the guarded update, and only what that did not match costs a look.
 */
export function createRecordAttempts(store: DeliveryStore): RecordAttempts {
  return async (batch) => {
    const fresh = batch.filter(isFirst);
    const known = fresh.length > 0 ? await store.insertAll(fresh) : new Set<string>();
    const rest = batch.filter((settled) => !isFirst(settled) || known.has(settled.id));
    const inserted = fresh.filter(({ id }) => !known.has(id));
    const unfinished = rest.length > 0 ? await updateRest(store, rest) : [];
    return new Set([...inserted, ...unfinished].filter(isFailure).map(({ id }) => id));
  };
}

/** A delivery that has no document before this batch: its first attempt, or cancelled before it. */
function isFirst({ attempt }: SettledDelivery): boolean {
  return attempt === null || attempt.number === 1;
}

function isFailure({ status, attempt }: SettledDelivery): boolean {
  return attempt !== null && !isFinal(status);
}

async function updateRest(
  store: DeliveryStore,
  rest: readonly SettledDelivery[],
): Promise<SettledDelivery[]> {
  const cancelled = rest.flatMap(({ id, reason, attempt, updatedAtMs: atMs }) =>
    reason && attempt === null ? [{ id, reason, atMs }] : [],
  );
  if (cancelled.length > 0) await store.cancelPending(cancelled);
  const attempted = rest.filter(({ attempt }) => attempt !== null);
  if (attempted.length === 0) return [];
  const { appended } = await store.appendAttempts(attempted);
  return appended === attempted.length ? attempted : reconcile(store, attempted);
}

/** Some attempts found their delivery further than expected, or gone; the stored state decides. */
async function reconcile(
  store: DeliveryStore,
  attempted: readonly SettledDelivery[],
): Promise<SettledDelivery[]> {
  const states = await store.statesOf(attempted.map(({ id }) => id));
  const gone = attempted.filter(({ id }) => !states.has(id));
  if (gone.length > 0) await store.insertAll(gone);
  const late = attempted.filter(({ id }) => states.get(id)?.status === 'cancelled');
  if (late.length > 0) await store.appendToCancelled(late);
  const repeatedSuccess = attempted.filter((settled) => {
    const state = states.get(settled.id);
    const isSuccess = settled.status === 'delivered';
    return isSuccess && state !== undefined && isSameAttempt(settled, state);
  });
  if (repeatedSuccess.length > 0) await store.replaceFailures(repeatedSuccess);
  return attempted.filter((settled) => {
    const state = states.get(settled.id);
    return state === undefined || isSameAttempt(settled, state);
  });
}

/** Still pending behind the attempt of this number, ours or a twin's: its failure may be unpublished. */
function isSameAttempt({ attempt }: SettledDelivery, state: DeliveryState): boolean {
  return state.status === 'pending' && state.attemptCount === attempt?.number;
}
