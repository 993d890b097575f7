import { describe, expect, it, test } from '@jest/globals';
import fc from 'fast-check';
import type { DeliveryStatus } from './delivery.ts';
import {
  decideArrival,
  decideLook,
  type FoundHead,
  hasHeadEnded,
  type Look,
  orderingNow,
  positionOf,
  type SequenceHead,
  sequenceIdOf,
} from './sequence.ts';

const HEAD: SequenceHead = { deliveryId: 'dlv_1', messageId: 'msg_1', position: 7 };
const DAY_MS = 86_400_000;
const NOW_MS = 1_700_000_000_000;

const found = (status: DeliveryStatus, waiting: 'order' | 'hold' | null = null): FoundHead => ({
  status,
  attemptCount: 1,
  waiting,
});

function look(changes: Partial<Look<string>> = {}): Look<string> {
  const sequence = { head: HEAD, lookAfterMs: 0, updatedAtMs: NOW_MS };
  return {
    sequence,
    found: found('pending'),
    ordering: 'block',
    next: null,
    nowMs: NOW_MS,
    ...changes,
  };
}

test('a disabled webhook keeps nothing behind an exhausted delivery', () => {
  expect(orderingNow({ ordering: 'block', disabled: false })).toBe('block');
  expect(orderingNow({ ordering: 'block', disabled: true })).toBe('skip');
  expect(orderingNow({ ordering: 'none', disabled: true })).toBe('none');
  expect(orderingNow(undefined)).toBeNull();
});

describe('the id of a sequence', () => {
  it('differs by webhook and by key, and is bounded for any key', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 512 }), fc.string({ maxLength: 512 }), (a, b) => {
        const id = sequenceIdOf('wh_1', a);
        expect(id).toHaveLength('wh_1/'.length + 22);
        expect(id === sequenceIdOf('wh_1', b)).toBe(a === b);
        expect(id).not.toBe(sequenceIdOf('wh_2', a));
      }),
    );
  });
});

describe('a position', () => {
  it('is the offset of the record, and behind what arrived before it', () => {
    const place = (offset: number | null, lastPosition: number) =>
      positionOf({ offset, lastPosition });
    expect([place(100, -1), place(100, 99), place(5, 1_000), place(null, -1)]).toEqual([
      100, 100, 1_001, 0,
    ]);
  });

  it('is the same for an owner that reads on behind the followers that one before has stored', () => {
    const offsets = fc.uniqueArray(fc.nat(10_000), { minLength: 1, maxLength: 30 });
    const replayed = fc.integer({ min: -1, max: 10_000 });
    fc.assert(
      fc.property(offsets, fc.nat(30), replayed, (unsorted, stored, last) => {
        const inOrder = unsorted.toSorted((a, b) => a - b);
        const place = (records: number[], behind: number): number[] => {
          let lastPosition = behind;
          return records.map((offset) => (lastPosition = positionOf({ offset, lastPosition })));
        };
        const first = place(inOrder, last);
        const behind = first.slice(0, stored).at(-1) ?? last;
        expect(place(inOrder.slice(stored), behind)).toEqual(first.slice(stored));
      }),
    );
  });
});

describe('the arrival of a delivery', () => {
  it('begins only with nothing in front of it', () => {
    fc.assert(
      fc.property(
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (isAnyStored, isAnyInMemory, hasRoom) => {
          const arrival = decideArrival({ isAnyStored, isAnyInMemory, hasRoom });
          expect(arrival === 'begin').toBe(!isAnyStored && !isAnyInMemory);
        },
      ),
    );
  });

  it('waits in memory behind what is there, while there is room, and never behind what is stored', () => {
    const front = { isAnyStored: false, isAnyInMemory: true, hasRoom: true };
    expect(decideArrival(front)).toBe('follow');
    expect(decideArrival({ ...front, hasRoom: false })).toBe('store');
    expect(decideArrival({ ...front, isAnyStored: true })).toBe('store');
  });
});

describe('the end of a head', () => {
  test.each([
    ['pending', 'skip', false],
    ['delivered', 'block', true],
    ['cancelled', 'block', true],
    ['exhausted', 'block', false],
    ['exhausted', 'skip', true],
    ['exhausted', 'none', true],
    ['exhausted', null, true],
  ] as const)('of a head that is %s, at a webhook with %s', (status, ordering, hasEnded) => {
    expect(hasHeadEnded(HEAD, found(status), ordering)).toBe(hasEnded);
  });

  it('comes when a client skips it, and when its document has expired, and not before it has one', () => {
    expect(hasHeadEnded({ ...HEAD, isSkipped: true }, found('exhausted'), 'block')).toBe(true);
    expect(hasHeadEnded(HEAD, 'removed', 'block')).toBe(true);
    expect(hasHeadEnded(HEAD, 'missing', 'skip')).toBe(false);
  });
});

describe('a look at a sequence', () => {
  it('comes later and later while its head is pending, and once a day at least', () => {
    const after = (lookAfterMs: number) =>
      decideLook(look({ sequence: { head: HEAD, lookAfterMs, updatedAtMs: NOW_MS } }));
    expect(after(0)).toEqual({ kind: 'wait', againAfterMs: 1_000 });
    expect(after(1_000)).toEqual({ kind: 'wait', againAfterMs: 2_000 });
    expect(after(DAY_MS)).toEqual({ kind: 'wait', againAfterMs: DAY_MS });
  });

  it('releases a head that waits for its turn, and no other one', () => {
    expect(decideLook(look({ found: found('pending', 'order') }))).toEqual({
      kind: 'release_head',
    });
    expect(decideLook(look({ found: found('pending', 'hold') })).kind).toBe('wait');
  });

  it('blocks behind an exhausted head, and goes on behind one that has ended', () => {
    const exhausted = look({ found: found('exhausted'), next: 'next' });
    expect(decideLook(exhausted)).toEqual({ kind: 'block', againAfterMs: DAY_MS });
    expect(decideLook({ ...exhausted, ordering: 'skip' })).toEqual({ kind: 'go_on', to: 'next' });
    expect(decideLook(look({ found: found('delivered'), next: 'next' })).kind).toBe('go_on');
  });

  it('deletes a sequence without followers that nothing has changed for a day', () => {
    const ended = look({ found: found('delivered') });
    expect(decideLook(ended).kind).toBe('wait');
    expect(decideLook({ ...ended, nowMs: NOW_MS + DAY_MS })).toEqual({ kind: 'delete' });
  });
});
