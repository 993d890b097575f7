import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  createLeaseHarness,
  type LeaseHarness,
} from '../../../../test/support/isolation/lease-harness.ts';

let at: LeaseHarness;

beforeEach(() => {
  at = createLeaseHarness();
});

describe('a lease without a release within 90 s in which the stores answer', () => {
  /** Whether the lease was taken over, and whether it is still announced to other processes. */
  async function lookAfter(ms: number): Promise<{ isTakenOver: boolean; announced: string[] }> {
    at.tickAfter(120);
    for (let passedMs = 0; passedMs < ms; passedMs += 4_000) {
      at.announced = [];
      at.tickAfter(4_000);
    }
    let isTakenOver = false;
    void at.leases.takeWhenFree('att_1', () => true).then(() => (isTakenOver = true));
    // Claimed together with the first, and granted after it.
    (await at.leases.takeWhenFree('att_other', () => true)).release();
    return { isTakenOver, announced: at.announced.flat() };
  }

  it('is taken over when its record is not ours any more', async () => {
    at.take('att_1');
    at.areOurs = false;
    at.outageFreeMs += 90_000;
    expect(await lookAfter(90_000)).toEqual({ isTakenOver: true, announced: [] });
  });

  it('is taken over by one that has waited for it since before', async () => {
    at.take('att_1');
    const waiting = at.leases.takeWhenFree('att_1', () => true);
    at.areOurs = false;
    at.outageFreeMs += 90_000;
    at.endWait();
    expect((await waiting).begin()).toBe(true);
    // Longer, and a partition whose consumer was replaced would be blocked for more than 150 s in all.
    expect(at.waits).toEqual([5_000]);
  });

  it('begins no request, also before it is taken over', () => {
    const hung = at.take('att_1');
    at.areOurs = false;
    at.outageFreeMs += 90_000;
    expect(hung.begin()).toBe(false);
  });

  it('begins no request once it is taken over', async () => {
    const hung = at.take('att_1');
    at.areOurs = false;
    at.outageFreeMs += 90_000;
    const next = await at.leases.takeWhenFree('att_1', () => true);
    expect([hung.begin(), next.begin()]).toEqual([false, true]);
  });

  it('is kept for as long while its record is ours: it waits for its reservation', async () => {
    at.take('att_1');
    at.outageFreeMs += 600_000;
    expect(await lookAfter(600_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
  });

  it('is kept for another 90 s when its request has begun', async () => {
    const lease = at.take('att_1');
    at.areOurs = false;
    at.outageFreeMs += 89_999;
    lease.begin();
    at.outageFreeMs += 89_999;
    expect(await lookAfter(4_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
  });

  it('is kept while a store is away, however long that takes', async () => {
    at.take('att_1');
    at.areOurs = false;
    expect(await lookAfter(600_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
  });

  it('is kept for another 90 s when its request was made', async () => {
    const lease = at.take('att_1');
    at.areOurs = false;
    at.outageFreeMs += 89_999;
    lease.markMade('delivery');
    at.outageFreeMs += 89_999;
    expect(await lookAfter(4_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
  });

  describe('whose request was made', () => {
    it('is taken over when no outcome is recorded any more', async () => {
      at.take('att_1').markMade('delivery');
      at.areOurs = false;
      at.outageFreeMs += 90_000;
      expect(await lookAfter(90_000)).toEqual({ isTakenOver: true, announced: [] });
    });

    it('is taken over when others were recorded that were made later', async () => {
      at.take('att_1').markMade('delivery');
      at.outageFreeMs += 30_000;
      const later = at.take('att_later');
      later.markMade('delivery');
      at.areOurs = false;
      at.outageFreeMs += 60_000;
      later.release();
      expect(await lookAfter(4_000)).toEqual({ isTakenOver: true, announced: [] });
    });

    it('is kept while later outcomes are recorded that wait in another queue', async () => {
      const earlier = at.take('att_earlier');
      earlier.markMade('delivery');
      at.take('att_1').markMade('delivery');
      at.outageFreeMs += 90_000;
      const resend = at.take('att_resend');
      resend.markMade('resend');
      at.areOurs = false;
      resend.release();
      earlier.release();
      expect(await lookAfter(4_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
    });

    it('is taken over by anybody once it is announced no more', async () => {
      const earlier = at.take('att_earlier');
      earlier.markMade('delivery');
      at.take('att_1').markMade('delivery');
      at.tickAfter(120);
      at.areOurs = false;
      at.outageFreeMs += 90_000;
      at.tickAfter(4_000);
      earlier.release();
      expect((await lookAfter(4_000)).isTakenOver).toBe(true);
    });

    it('is kept while those are recorded that were made before it, however long that takes', async () => {
      const earlier = at.take('att_earlier');
      earlier.markMade('delivery');
      at.take('att_1').markMade('delivery');
      at.areOurs = false;
      at.outageFreeMs += 300_000;
      earlier.release();
      expect(await lookAfter(4_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
    });
  });

  it('is kept while the outcome of its request cannot be recorded, because a store is away', async () => {
    at.take('att_1').markMade('delivery');
    at.areOurs = false;
    expect(await lookAfter(600_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
  });
});
