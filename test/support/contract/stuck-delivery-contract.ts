import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { StuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { WAITING } from '@posthorn/domain/waiting.ts';
import { createSettledSamples, nextOf } from './settled-samples.ts';

export interface OpenStuckDeliveries {
  stuck: StuckDeliveries;
  deliveries: Pick<DeliveryStore, 'insertAll' | 'appendAttempts'>;
  /** Removes every delivery. */
  clear: () => Promise<void>;
  close: () => Promise<void>;
}

/** What every StuckDeliveries does. */
export function stuckDeliveryContract(open: () => Promise<OpenStuckDeliveries>): void {
  describe('stuck deliveries', () => {
    const settled = createSettledSamples();
    const failed = (changes: Partial<SettledDelivery> = {}): SettledDelivery =>
      settled(1, { nextAttemptAtMs: null, updatedAtMs: 1_000, ...changes });
    let opened: OpenStuckDeliveries;
    let stuck: StuckDeliveries;

    beforeAll(async () => {
      opened = await open();
      ({ stuck } = opened);
    });

    beforeEach(() => opened.clear());

    afterAll(() => opened.close());

    const insert = (...batch: SettledDelivery[]) => opened.deliveries.insertAll(batch);
    const overdueIds = async (beforeMs: number, limit = 10): Promise<string[]> =>
      (await stuck.findOverdue(beforeMs, limit)).map(({ id }) => id);
    const unendedIds = async (beforeMs: number): Promise<string[]> =>
      (await stuck.findUnended(beforeMs, 10)).map(({ id }) => id);

    it('are pending ones whose next attempt is overdue, the longest overdue first', async () => {
      const late = failed({ nextAttemptAtMs: 3 });
      const later = failed({ nextAttemptAtMs: 2 });
      const ended = failed({ status: 'exhausted', nextAttemptAtMs: 1 });
      await insert(late, later, failed({ nextAttemptAtMs: 5 }), ended, failed());
      expect(await overdueIds(5)).toEqual([later.id, late.id]);
      expect(await overdueIds(5, 1)).toEqual([later.id]);
    });

    it.each(WAITING)(
      'are none that wait, though these are stored as overdue: %s',
      async (waiting) => {
        const wait = { waiting, attemptNumber: 1 };
        await insert(failed({ attempt: null, nextAttemptAtMs: 1, wait }));
        const other = failed({ nextAttemptAtMs: 2 });
        await insert(other);
        expect([await overdueIds(5, 1), await unendedIds(5_000)]).toEqual([[other.id], []]);
      },
    );

    it('are pending ones without a next attempt that nobody has ended', async () => {
      const unended = failed();
      const fresh = failed({ updatedAtMs: 2_000 });
      await insert(unended, fresh, failed({ nextAttemptAtMs: 1 }), failed({ status: 'delivered' }));
      expect(await unendedIds(2_000)).toEqual([unended.id]);
      const { attempt, ...rest } = unended;
      const waits = { waiting: null, waitingSinceMs: null };
      const expected = { ...rest, ...waits, attemptCount: 1, attempts: [attempt] };
      expect(await stuck.findUnended(2_000, 10)).toEqual([expected]);
    });

    it('have their newest attempt only', async () => {
      const first = failed({ nextAttemptAtMs: 1 });
      const second = nextOf(first, { nextAttemptAtMs: 2 });
      await insert(first);
      await opened.deliveries.appendAttempts([second]);
      const [found] = await stuck.findOverdue(5, 1);
      expect(found?.attempts).toEqual([second.attempt]);
    });

    it('are not found again after they were swept, until they are stuck for as long again', async () => {
      await insert(failed({ nextAttemptAtMs: 1 }), failed());
      await stuck.markSwept(
        [...(await stuck.findOverdue(5, 10)), ...(await stuck.findUnended(5_000, 10))],
        9_000,
      );
      expect([await overdueIds(9_000), await unendedIds(9_000)]).toEqual([[], []]);
      expect((await overdueIds(9_001)).concat(await unendedIds(9_001))).toHaveLength(2);
    });

    it('are not marked when they have moved on since they were found', async () => {
      const first = failed({ nextAttemptAtMs: 1 });
      await insert(first);
      const found = await stuck.findOverdue(5, 1);
      await opened.deliveries.appendAttempts([nextOf(first, { nextAttemptAtMs: 2 })]);
      await stuck.markSwept(found, 9_000);
      expect(await stuck.findOverdue(5, 1)).toMatchObject([
        { attemptCount: 2, nextAttemptAtMs: 2 },
      ]);
    });
  });
}
