import { describe, expect, it } from '@jest/globals';
import { auditOrder, type ListedKey, type OrderedDelivery, type OrderedKey } from './order.ts';

const NEVER: OrderedDelivery = {
  name: '',
  firstAt: Infinity,
  succeededAt: Infinity,
  refusedAt: Infinity,
  cancelledAt: Infinity,
  skippedAt: Infinity,
  hasTwoIds: false,
  ended: null,
};

const exhausted = { status: 'exhausted', deliveryId: 'dlv_1' } as const;
const cancelled = { status: 'cancelled', deliveryId: 'dlv_1' } as const;

/** Received at its tenth: the first one at 10 to 15, the second one at 20 to 25, and so on. */
function received(nth: number, changed: Partial<OrderedDelivery> = {}): OrderedDelivery {
  const firstAt = nth * 10;
  return { ...NEVER, name: `m${nth}`, firstAt, succeededAt: firstAt + 5, ...changed };
}

/** Refused at its last attempt. */
function refused(nth: number, changed: Partial<OrderedDelivery> = {}): OrderedDelivery {
  const refusedAt = nth * 10 + 5;
  return received(nth, { succeededAt: Infinity, refusedAt, ended: exhausted, ...changed });
}

const waits = (nth: number): OrderedDelivery => ({ ...NEVER, name: `m${nth}` });

const BLOCKED: ListedKey = { state: 'blocked', headDeliveryId: 'dlv_1', waiting: 2 };

function findingsOf(
  deliveries: readonly OrderedDelivery[],
  changed: Partial<Omit<OrderedKey, 'deliveries'>> = {},
): Record<string, string[]> {
  const key = { name: 'key', ordering: 'block' as const, listed: null, ...changed, deliveries };
  return Object.fromEntries(auditOrder([key]).map(({ what, examples }) => [what, examples]));
}

describe('the audit of order', () => {
  it('finds nothing in deliveries that follow each other', () => {
    expect(findingsOf([received(1), received(2), received(3)])).toEqual({});
  });

  it('finds a first success that came before an earlier one', () => {
    const late = received(1, { firstAt: 1, succeededAt: 30 });
    expect(findingsOf([late, received(2)])).toEqual({
      'a first success out of order': ['m2'],
      'an attempt before its turn': ['m2'],
    });
  });

  it('finds an attempt that began before an earlier delivery had ended', () => {
    const early = received(2, { firstAt: 14 });
    expect(findingsOf([received(1), early])).toEqual({ 'an attempt before its turn': ['m2'] });
  });

  it('finds an attempt that began before one further in front had ended', () => {
    const deliveries = [received(1, { succeededAt: 35 }), refused(2, { firstAt: 36 }), received(3)];
    expect(findingsOf(deliveries, { ordering: 'skip' })).toMatchObject({
      'an attempt before its turn': ['m3'],
    });
  });

  it('finds a delivery that is never received', () => {
    expect(findingsOf([received(1), waits(2)])).toEqual({ 'lost with an ordering key': ['m2'] });
  });

  it('finds one that is exhausted without refusals, and one that nobody has cancelled', () => {
    const deliveries = [
      refused(1, { refusedAt: Infinity, succeededAt: 15 }),
      received(2, { ended: cancelled }),
    ];
    expect(findingsOf(deliveries, { ordering: 'skip' })).toEqual({
      'lost with an ordering key': ['m1', 'm2'],
    });
  });

  it('finds a message that came under two ids', () => {
    expect(findingsOf([received(1, { hasTwoIds: true })])).toEqual({
      'one message under two ids': ['m1'],
    });
  });

  describe('behind an exhausted delivery', () => {
    it('wants those of `skip` to begin after its last refusal', () => {
      const skip = { ordering: 'skip' } as const;
      expect(findingsOf([refused(1), received(2)], skip)).toEqual({});
      expect(findingsOf([refused(1, { refusedAt: 21 }), received(2)], skip)).toEqual({
        'an attempt before its turn': ['m2'],
      });
    });

    it('wants those of `block` to wait, and the key to be listed', () => {
      expect(findingsOf([refused(1), waits(2), waits(3)], { listed: BLOCKED })).toEqual({});
      expect(findingsOf([refused(1), received(2)], { listed: { ...BLOCKED, waiting: 0 } })).toEqual(
        {
          'an attempt before its turn': ['m2'],
        },
      );
    });

    it('finds a blocked key that is not listed, or with another head or count', () => {
      const wrong = [
        null,
        { ...BLOCKED, headDeliveryId: 'dlv_2' },
        { ...BLOCKED, waiting: 1 },
        { ...BLOCKED, state: 'waiting' as const },
      ];
      for (const listed of wrong) {
        expect(Object.keys(findingsOf([refused(1), waits(2), waits(3)], { listed }))).toEqual([
          'a blocked key that is not listed',
        ]);
      }
    });

    it('counts up to 1,000 followers', () => {
      const followers = Array.from({ length: 1_200 }, (_, nth) => waits(nth));
      const listed = { ...BLOCKED, waiting: 1_000 };
      expect(findingsOf([refused(1), ...followers], { listed })).toEqual({});
    });

    it('lets them begin once it is skipped, or sent again with success', () => {
      const skipped = refused(1, { skippedAt: 19 });
      expect(findingsOf([skipped, received(2)])).toEqual({});
      expect(findingsOf([{ ...skipped, skippedAt: 21 }, received(2)])).toEqual({
        'an attempt before its turn': ['m2'],
      });
      const sentAgain = refused(1, { succeededAt: 19, ended: null });
      expect(findingsOf([sentAgain, received(2)])).toEqual({});
    });
  });

  it('lets those behind a cancelled delivery begin after the request to cancel it', () => {
    const first = received(1, { succeededAt: Infinity, cancelledAt: 19, ended: cancelled });
    expect(findingsOf([first, received(2)])).toEqual({});
    expect(findingsOf([{ ...first, cancelledAt: 21 }, received(2)])).toEqual({
      'an attempt before its turn': ['m2'],
    });
  });

  it('finds a listed key that nothing blocks', () => {
    expect(Object.keys(findingsOf([received(1)], { listed: BLOCKED }))).toEqual([
      'a listed key that is not blocked',
    ]);
  });
});
