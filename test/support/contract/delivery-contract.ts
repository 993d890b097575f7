import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Delivery, ExhaustReason } from '@posthorn/domain/delivery/delivery.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createSettledSamples, nextOf, succeeded } from './settled-samples.ts';

export interface OpenDeliveries {
  store: DeliveryStore;
  /** A delivery of comp_a; undefined when it is not stored. */
  read: (id: string) => Promise<Delivery | undefined>;
  close: () => Promise<void>;
}

/** What every DeliveryStore does. */
export function deliveryContract(open: () => Promise<OpenDeliveries>): void {
  const settled = createSettledSamples();
  let opened: OpenDeliveries;
  let store: DeliveryStore;

  beforeAll(async () => {
    opened = await open();
    ({ store } = opened);
  });

  afterAll(() => opened.close());

  const stateOf = async (id: string) => (await store.statesOf([id])).get(id);
  const unattempted = () =>
    settled(1, { status: 'cancelled', reason: 'webhook_deleted', attempt: null });

  describe('a stored delivery', () => {
    it('is read as it was settled', async () => {
      const delivery = settled();
      await store.insertAll([delivery]);
      const { attempt, ...rest } = delivery;
      const waits = { waiting: null, waitingSinceMs: null };
      const expected = { ...rest, ...waits, attemptCount: 1, attempts: [attempt] };
      expect(await opened.read(delivery.id)).toEqual(expected);
    });

    it('is read with its newest attempt only, or without one', async () => {
      const first = settled();
      const second = nextOf(first);
      const cancelled = unattempted();
      await store.insertAll([first, cancelled]);
      await store.appendAttempts([second]);
      expect(await store.recordedOf([first.id, cancelled.id, 'dlv_unknown'])).toEqual(
        new Map([
          [first.id, { status: 'pending', attemptCount: 2, lastAttempt: second.attempt }],
          [cancelled.id, { status: 'cancelled', attemptCount: 0, lastAttempt: null }],
        ]),
      );
    });

    it('is not inserted again, and does not stop the others of its batch', async () => {
      const [old, fresh] = [settled(), settled()];
      expect(await store.insertAll([old])).toEqual(new Set());
      expect(await store.insertAll([old, fresh])).toEqual(new Set([old.id]));
      expect(await stateOf(fresh.id)).toEqual({ status: 'pending', attemptCount: 1 });
    });

    it('may be cancelled before its first attempt', async () => {
      const cancelled = unattempted();
      await store.insertAll([cancelled]);
      expect(await stateOf(cancelled.id)).toEqual({ status: 'cancelled', attemptCount: 0 });
    });
  });

  describe('a later attempt', () => {
    it('is appended once, however often it is recorded', async () => {
      const first = settled();
      const second = nextOf(first, { nextAttemptAtMs: 9_000, updatedAtMs: 6_000 });
      await store.insertAll([first]);
      expect(await store.appendAttempts([second])).toEqual({ appended: 1 });
      expect(await store.appendAttempts([second, first])).toEqual({ appended: 0 });
      expect(await opened.read(first.id)).toMatchObject({
        attempts: [{ number: 1 }, { number: 2 }],
        attemptCount: 2,
        nextAttemptAtMs: 9_000,
        updatedAtMs: 6_000,
      });
    });

    it('is appended to no delivery that is final or not stored', async () => {
      const done = succeeded(settled());
      await store.insertAll([done]);
      expect(await store.appendAttempts([nextOf(done), nextOf(settled())])).toEqual({
        appended: 0,
      });
      expect(await stateOf(done.id)).toEqual({ status: 'delivered', attemptCount: 1 });
    });

    it('ends its delivery when it succeeds', async () => {
      const first = settled();
      await store.insertAll([first]);
      await store.appendAttempts([succeeded(nextOf(first))]);
      expect(await opened.read(first.id)).toMatchObject({
        status: 'delivered',
        nextAttemptAtMs: null,
      });
    });
  });

  describe('a success', () => {
    it('replaces the failure that was recorded under the same number', async () => {
      const first = settled();
      await store.insertAll([first]);
      await store.replaceFailures([succeeded(first)]);
      const found = await opened.read(first.id);
      expect(found).toMatchObject({ status: 'delivered', nextAttemptAtMs: null });
      expect(found?.attempts.map(({ outcome }) => outcome)).toEqual(['success']);
    });

    it('replaces no failure of another number, and none of a delivery that is final', async () => {
      const [first, ended] = [settled(), settled(1, { status: 'exhausted' })];
      await store.insertAll([first, ended]);
      await store.replaceFailures([succeeded(nextOf(first)), succeeded(ended)]);
      expect(await stateOf(first.id)).toEqual({ status: 'pending', attemptCount: 1 });
      expect(await stateOf(ended.id)).toEqual({ status: 'exhausted', attemptCount: 1 });
    });
  });

  describe('a cancelled delivery', () => {
    const cancelled = async () => {
      const first = settled();
      await store.insertAll([first]);
      await store.cancelPending([{ id: first.id, reason: 'webhook_deleted', atMs: 7 }]);
      return first;
    };

    it('was pending, and has its reason', async () => {
      const { id } = await cancelled();
      expect(await opened.read(id)).toMatchObject({
        status: 'cancelled',
        reason: 'webhook_deleted',
        nextAttemptAtMs: null,
        updatedAtMs: 7,
      });
      const done = succeeded(settled());
      await store.insertAll([done]);
      const both = [id, done.id].map((each) => {
        return { id: each, reason: 'webhook_deleted' as const, atMs: 7 };
      });
      expect(await store.cancelPending(both)).toEqual({ matched: 0 });
      expect(await stateOf(done.id)).toEqual({ status: 'delivered', attemptCount: 1 });
    });

    it('gets an attempt that failed meanwhile, and stays cancelled', async () => {
      const first = await cancelled();
      const second = nextOf(first);
      await store.appendToCancelled([second]);
      await store.appendToCancelled([second]);
      const found = await opened.read(first.id);
      expect(found).toMatchObject({ status: 'cancelled', reason: 'webhook_deleted' });
      expect(found?.attempts.map(({ number }) => number)).toEqual([1, 2]);
    });

    it('is delivered by an attempt that succeeded meanwhile', async () => {
      const first = await cancelled();
      await store.appendToCancelled([succeeded(nextOf(first))]);
      const found = await opened.read(first.id);
      expect(found).toMatchObject({ status: 'delivered', reason: null, attemptCount: 2 });
    });

    it('alone gets such an attempt', async () => {
      const first = settled();
      await store.insertAll([first]);
      await store.appendToCancelled([nextOf(first)]);
      expect(await stateOf(first.id)).toEqual({ status: 'pending', attemptCount: 1 });
    });
  });

  it('a delivery is exhausted once, and only after the attempt that ended its schedule', async () => {
    const first = settled();
    await store.insertAll([first]);
    const exhaust = (attemptCount: number, reason: ExhaustReason | null = null) =>
      store.exhaust({ id: first.id, attemptCount, reason, atMs: 9 });
    expect(await exhaust(2)).toBe(false);
    expect(await exhaust(1, 'gone')).toBe(true);
    expect(await exhaust(1)).toBe(false);
    const exhausted = { status: 'exhausted', reason: 'gone', nextAttemptAtMs: null };
    expect(await opened.read(first.id)).toMatchObject({ ...exhausted, updatedAtMs: 9 });
  });

  it('an attempt keeps why it is the last one, for whoever publishes its failure', async () => {
    const first = settled();
    if (!first.attempt) throw new Error('there is no attempt');
    await store.insertAll([{ ...first, attempt: { ...first.attempt, ending: 'not_retryable' } }]);
    const recorded = await store.recordedOf([first.id]);
    expect(recorded.get(first.id)?.lastAttempt).toMatchObject({ ending: 'not_retryable' });
  });
}
