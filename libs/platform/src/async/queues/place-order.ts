/** Something that waits for a free place: the queue of an endpoint. */
export interface Waiter {
  companyId: string;
}

/** Decides what gets the next free place. */
export interface PlaceOrder<T extends Waiter> {
  /** Appends it to the order of its company, unless it waits there already. */
  add: (waiter: T) => void;
  remove: (waiter: T) => void;
  /** Removes and returns what is next; null when nothing waits. Companies that are not `mayGo` keep their turn. */
  next: (mayGo?: (companyId: string) => boolean) => T | null;
}

/**
 * Companies take turns, and so do the endpoints of a company. No place is kept free for a company that
 * waits for none: a single one gets every place.
 */
export function createPlaceOrder<T extends Waiter>(): PlaceOrder<T> {
  // A Map and a Set keep insertion order: what was served goes to the end.
  const companies = new Map<string, Set<T>>();
  return {
    add(waiter) {
      const known = companies.get(waiter.companyId);
      if (known) known.add(waiter);
      else companies.set(waiter.companyId, new Set([waiter]));
    },
    remove(waiter) {
      const waiters = companies.get(waiter.companyId);
      waiters?.delete(waiter);
      if (waiters?.size === 0) companies.delete(waiter.companyId);
    },
    next(mayGo) {
      for (const [companyId, waiters] of companies) {
        if (mayGo && !mayGo(companyId)) continue;
        companies.delete(companyId);
        for (const waiter of waiters) {
          waiters.delete(waiter);
          if (waiters.size > 0) companies.set(companyId, waiters);
          return waiter;
        }
      }
      return null;
    },
  };
}
