import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';

export interface OpenLeases {
  leases: LeaseStore;
  /** Lets the time of a lease run out. */
  expire: (name: string) => Promise<void>;
  close: () => Promise<void>;
}

/** What every LeaseStore does. */
export function leaseContract(open: () => Promise<OpenLeases>): void {
  describe('a lease', () => {
    let opened: OpenLeases;
    let leases: LeaseStore;

    beforeAll(async () => {
      opened = await open();
      ({ leases } = opened);
    });

    afterAll(() => opened.close());

    it('belongs to the first holder, who may renew it, and to nobody else', async () => {
      expect(await leases.hold('a', 'first')).toBe(true);
      expect(await leases.hold('a', 'second')).toBe(false);
      expect(await leases.hold('a', 'first')).toBe(true);
    });

    it('is free after it was released', async () => {
      await leases.hold('b', 'first');
      await leases.release('b', 'first');
      expect(await leases.hold('b', 'second')).toBe(true);
    });

    it('is free after it has expired', async () => {
      await leases.hold('c', 'first');
      await opened.expire('c');
      expect(await leases.hold('c', 'second')).toBe(true);
      expect(await leases.hold('c', 'first')).toBe(false);
    });

    it('is not released by another holder', async () => {
      await leases.hold('d', 'first');
      await leases.release('d', 'second');
      expect(await leases.hold('d', 'second')).toBe(false);
    });

    it('goes to exactly one of many holders that take it at once', async () => {
      const holders = Array.from({ length: 20 }, (_, n) => `holder-${n}`);
      const results = await Promise.all(holders.map((holder) => leases.hold('e', holder)));
      expect(results.filter(Boolean)).toHaveLength(1);
    });
  });
}
