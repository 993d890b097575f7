/** Something that waits for a free place: an endpoint, or one lane of it. */
export interface Taker {
  companyId: string;
}

/** Who gets the next free place. */
export interface PlaceOrder<T extends Taker> {
  /** To the end of its company's order, unless it stands there already. */
  add: (taker: T) => void;
  remove: (taker: T) => void;
  /** Takes out who is next; null when nobody waits. */
  next: () => T | null;
}

/**
 * Companies take turns, then the endpoints of a company. Nobody is kept waiting for a company that
 * wants nothing: a lone one gets every place.
 */
export function createPlaceOrder<T extends Taker>(): PlaceOrder<T> {
  // A Map and a Set keep insertion order: who was served goes to the end.
  const companies = new Map<string, Set<T>>();
  return {
    add(taker) {
      const known = companies.get(taker.companyId);
      if (known) known.add(taker);
      else companies.set(taker.companyId, new Set([taker]));
    },
    remove(taker) {
      const takers = companies.get(taker.companyId);
      takers?.delete(taker);
      if (takers?.size === 0) companies.delete(taker.companyId);
    },
    next() {
      for (const [companyId, takers] of companies) {
        companies.delete(companyId);
        for (const taker of takers) {
          takers.delete(taker);
          if (takers.size > 0) companies.set(companyId, takers);
          return taker;
        }
      }
      return null;
    },
  };
}
