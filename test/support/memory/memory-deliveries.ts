import type { Delivery } from '@posthorn/domain/delivery/delivery.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';

/** The store of deliveries in memory. */
export interface MemoryDeliveries extends DeliveryStore {
  /** The stored deliveries by id. */
  stored: Map<string, Delivery>;
}

export function createMemoryDeliveries(stored = new Map<string, Delivery>()): MemoryDeliveries {
  const update = (
    id: string,
    isMatch: (found: Delivery) => boolean,
    changes: Partial<Delivery>,
  ) => {
    const found = stored.get(id);
    if (!found || !isMatch(found)) return false;
    stored.set(id, { ...found, ...changes });
    return true;
  };
  const isPending = ({ status }: Delivery): boolean => status === 'pending';
  return {
    stored,
    insertAll(batch) {
      const known = batch.filter(({ id }) => stored.has(id)).map(({ id }) => id);
      for (const settled of batch)
        if (!stored.has(settled.id)) stored.set(settled.id, toDelivery(settled));
      return Promise.resolve(new Set(known));
    },
    appendAttempts(batch) {
      const appended = batch.filter((settled) => {
        const { status, reason, nextAttemptAtMs, updatedAtMs } = settled;
        const changes = { status, reason, nextAttemptAtMs, updatedAtMs, ...NOT_WAITING };
        const isMatch = (found: Delivery) => isPending(found) && isEarlier(found, settled);
        return update(settled.id, isMatch, { ...changes, ...attemptsWith(stored, settled) });
      });
      return Promise.resolve({ appended: appended.length });
    },
    appendToCancelled(batch) {
      for (const settled of batch) {
        const { status, updatedAtMs } = settled;
        const changes = { updatedAtMs, ...attemptsWith(stored, settled) };
        const isMatch = (found: Delivery) =>
          found.status === 'cancelled' && isEarlier(found, settled);
        const delivered = status === 'delivered' ? ({ status, reason: null } as const) : null;
        update(settled.id, isMatch, { ...changes, ...delivered });
      }
      return Promise.resolve();
    },
    replaceFailures(batch) {
      for (const { id, attempt, status, nextAttemptAtMs, updatedAtMs } of batch) {
        if (!attempt) continue;
        const isMatch = (found: Delivery) =>
          isPending(found) && found.attemptCount === attempt.number;
        const attempts = (stored.get(id)?.attempts ?? []).map((each) =>
          each.number === attempt.number ? attempt : each,
        );
        update(id, isMatch, { status, nextAttemptAtMs, updatedAtMs, attempts });
      }
      return Promise.resolve();
    },
    cancelPending(batch) {
      const matched = batch.filter(({ id, reason, atMs }) => {
        const ended = { status: 'cancelled', reason, nextAttemptAtMs: null } as const;
        return update(id, isPending, { ...ended, ...NOT_WAITING, updatedAtMs: atMs });
      });
      return Promise.resolve({ matched: matched.length });
    },
    setWaiting(batch) {
      const matched = batch.filter(({ id, wait, nextAttemptAtMs, updatedAtMs }) => {
        const isMatch = (found: Delivery) =>
          isPending(found) && found.attemptCount + 1 === wait?.attemptNumber;
        const waiting = wait?.waiting ?? null;
        return update(id, isMatch, {
          waiting,
          waitingSinceMs: updatedAtMs,
          nextAttemptAtMs,
          updatedAtMs,
        });
      });
      return Promise.resolve({ matched: matched.length });
    },
    exhaust({ id, attemptCount, reason, atMs }) {
      const isMatch = (found: Delivery) => isPending(found) && found.attemptCount === attemptCount;
      const ended = { status: 'exhausted', reason, nextAttemptAtMs: null } as const;
      return Promise.resolve(update(id, isMatch, { ...ended, updatedAtMs: atMs }));
    },
    statesOf: (ids) =>
      Promise.resolve(
        readOf(stored, ids, ({ status, attemptCount }) => ({ status, attemptCount })),
      ),
    recordedOf: (ids) =>
      Promise.resolve(
        readOf(stored, ids, ({ status, attemptCount, attempts }) => ({
          status,
          attemptCount,
          lastAttempt: attempts.at(-1) ?? null,
        })),
      ),
  };
}

/** Returns the delivery that is inserted for a settled one. */
function toDelivery({ attempt, wait, ...rest }: SettledDelivery): Delivery {
  return {
    ...rest,
    attemptCount: attempt?.number ?? (wait ? wait.attemptNumber - 1 : 0),
    attempts: attempt ? [attempt] : [],
    waiting: wait?.waiting ?? null,
    waitingSinceMs: wait ? rest.updatedAtMs : null,
  };
}

const NOT_WAITING = { waiting: null, waitingSinceMs: null };

function isEarlier({ attemptCount }: Delivery, { attempt }: SettledDelivery): boolean {
  return attemptCount < (attempt?.number ?? 0);
}

function attemptsWith(
  stored: ReadonlyMap<string, Delivery>,
  { id, attempt }: SettledDelivery,
): Partial<Delivery> {
  if (!attempt) return {};
  const attempts = [...(stored.get(id)?.attempts ?? []), attempt];
  return { attempts, attemptCount: attempt.number };
}

function readOf<T>(
  stored: ReadonlyMap<string, Delivery>,
  ids: readonly string[],
  read: (delivery: Delivery) => T,
): Map<string, T> {
  return new Map(
    ids.flatMap((id): [string, T][] => {
      const found = stored.get(id);
      return found ? [[id, read(found)]] : [];
    }),
  );
}
