import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';

/** Leases without a clock: one ends when it is released, or when a test deletes its holder. */
export interface MemoryLeases extends LeaseStore {
  /** Holder by lease name. */
  holders: Map<string, string>;
}

export function createMemoryLeases(): MemoryLeases {
  const holders = new Map<string, string>();
  return {
    holders,
    hold(name, holder) {
      const current = holders.get(name) ?? holder;
      holders.set(name, current);
      return Promise.resolve(current === holder);
    },
    release(name, holder) {
      if (holders.get(name) === holder) holders.delete(name);
      return Promise.resolve();
    },
  };
}
