import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';

/** Leases without a clock: they end when they are released or taken away. */
export interface MemoryLeases extends LeaseStore {
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
