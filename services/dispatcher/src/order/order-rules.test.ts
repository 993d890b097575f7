import { describe, expect, test } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import type { Follower } from '@posthorn/platform/mongo/messages/sequences.ts';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import {
  decideArrivals,
  decideRefill,
  type EntryView,
  findPositions,
  headInMemory,
  type SequenceView,
} from './order-rules.ts';
import type { Stored } from './stored-sequences.ts';

/** The delivery whose record has this offset. */
const idAt = (offset: number): string => `dlv_${offset}`;

interface EntryChanges extends Partial<Pick<EntryView, 'state' | 'isOurs'>> {
  topic?: string;
  attemptNumber?: number;
}

/** A record that has arrived, at its offset. */
function entry(offset: number, changes: EntryChanges = {}): EntryView {
  const { topic = 'created', attemptNumber = 1, ...others } = changes;
  return {
    record: { topic, offset },
    due: { deliveryId: idAt(offset), attemptNumber },
    isOurs: () => true,
    state: 'arrived',
    position: offset,
    ...others,
  };
}

const unplaced = (offset: number, topic = 'created'): EntryView => ({
  ...entry(offset, { topic }),
  position: null,
});

function follower(position: number, waiting: Follower['waiting'] = 'order'): Follower {
  const times = { waitingSinceMs: 1, dueAtMs: 1 };
  const deliveryId = idAt(position);
  return {
    ...refOf(sampleDue()),
    ...times,
    id: deliveryId,
    deliveryId,
    attemptCount: 0,
    waiting,
    position,
  };
}

const placed = (position: number) => ({ deliveryId: idAt(position), messageId: 'm', position });

/** The stored part of a sequence with an open head, which is in front of these followers. */
function stored(headAt: number, plan: readonly Follower[], changes: Partial<Stored> = {}): Stored {
  const times = { dueAtMs: 1, lookAfterMs: 1, sinceMs: 1, updatedAtMs: 1 };
  const place = { companyId: 'comp_a', webhookId: 'wh_1', orderingKey: 'order-1' };
  const head = placed(headAt);
  return {
    sequence: { ...place, ...times, id: 's', head, fromId: 'f', changes: 1, isBlocked: false },
    blocker: head,
    plan: [...plan],
    isWhole: true,
    lastPosition: plan.at(-1)?.position ?? headAt,
    ...changes,
  };
}

function sequence(entries: readonly EntryView[], changes: Partial<SequenceView> = {}) {
  return { entries, stored: null, endedTo: -1, ...changes } satisfies SequenceView;
}

describe('the position of a record', () => {
  const positions = (view: SequenceView): number[] =>
    findPositions(view, 'created').map(({ position }) => position);

  test('is its offset', () => {
    expect(positions(sequence([unplaced(3), unplaced(8)]))).toEqual([3, 8]);
  });

  test('is that of its document when its delivery is stored', () => {
    const recordOf = (position: number): EntryView => ({
      ...unplaced(90),
      due: { deliveryId: idAt(position), attemptNumber: 1 },
    });
    const stated = { ...unplaced(91, 'due'), due: { ...entry(0).due, position: 30 } };
    const entries = [recordOf(40), recordOf(20), stated];
    const view = sequence(entries, { stored: stored(20, [follower(40)]) });
    expect(positions(view)).toEqual([40, 20, 30]);
  });

  test('stays as it is', () => {
    expect(positions(sequence([entry(3), unplaced(8)]))).toEqual([8]);
  });

  test.each([
    ['in memory', sequence([entry(9), unplaced(3), unplaced(4)])],
    ['stored', sequence([unplaced(3), unplaced(4)], { stored: stored(2, [follower(9)]) })],
    ['ended', sequence([unplaced(3), unplaced(4)], { endedTo: 9 })],
    ['in memory, for one of another topic', sequence([entry(9), unplaced(50, 'due'), unplaced(4)])],
  ])('is above the last one that is %s', (_where, view) => {
    expect(positions(view)).toEqual([10, 11]);
  });
});

describe('the records of a key that wait', () => {
  const decide = (view: SequenceView, hasRoom: (each: EntryView) => boolean = () => true) =>
    decideArrivals(view, hasRoom).map((each) => [each.entry.position, each.arrival]);

  test('follow the first one in the order of their positions', () => {
    expect(decide(sequence([entry(5), entry(1), entry(3)]))).toEqual([
      [1, 'begin'],
      [3, 'follow'],
      [5, 'follow'],
    ]);
  });

  test.each(['begun', 'failed', 'storing'] as const)('wait behind one that is %s', (state) => {
    expect(decide(sequence([entry(1, { state }), entry(2)]))).toEqual([[2, 'follow']]);
  });

  test('begin when the success in front is read', () => {
    const ended = sequence([entry(1, { state: 'ended' }), entry(2, { state: 'following' })]);
    expect(decide({ ...ended, endedTo: 1 })).toEqual([[2, 'begin']]);
  });

  test('are the business of the next owner when their partition has gone', () => {
    expect(decide(sequence([entry(1, { isOurs: () => false })]))).toEqual([]);
  });

  test('are stored behind a stored delivery that has not ended', () => {
    const view = sequence([entry(2), entry(9)], { stored: stored(4, []) });
    expect(decide(view)).toEqual([
      [2, 'begin'],
      [9, 'store'],
    ]);
    expect(decide({ ...view, endedTo: 4 })).toEqual([
      [2, 'begin'],
      [9, 'begin'],
    ]);
  });

  test('are stored behind the end of a plan behind which others may be stored', () => {
    const plan = [follower(2)];
    const part = stored(1, plan, { blocker: null, isWhole: false });
    const entries = [entry(2, { state: 'begun' }), entry(3)];
    expect(decide(sequence(entries, { stored: part }))).toEqual([[3, 'store']]);
    const whole = { ...part, isWhole: true };
    expect(decide(sequence(entries, { stored: whole }))).toEqual([[3, 'follow']]);
  });

  test('leave memory with all behind the first one when one of them has no room', () => {
    const view = sequence([entry(1), entry(2, { state: 'following' }), entry(3)]);
    expect(decide(view, ({ state }) => state === 'following')).toEqual([
      [1, 'begin'],
      [2, 'store'],
      [3, 'store'],
    ]);
  });

  test('stay in memory when they are stored already', () => {
    const entries = [entry(1, { state: 'begun' }), entry(2, { state: 'following' }), entry(3)];
    const view = sequence(entries, { stored: stored(1, [follower(2)]) });
    expect(decide(view, ({ state }) => state === 'following')).toEqual([
      [2, 'follow'],
      [3, 'store'],
    ]);
  });

  test('are counted for their room, those that are being stored too', () => {
    const counts: number[] = [];
    const states = ['begun', 'failed', 'ended', 'storing', 'following', 'arrived'] as const;
    const entries = states.map((state, index) => entry(index, { state }));
    decideArrivals(sequence(entries), (_entry, waitingOfKey) => counts.push(waitingOfKey) > 0);
    expect(counts).toEqual([3, 3]);
  });
});

describe('the head that the store has to name', () => {
  const inWork = [entry(4, { state: 'failed' }), entry(2, { state: 'begun' }), entry(5)];

  test('is the first record that has its attempt', () => {
    expect(headInMemory(sequence(inWork))?.position).toBe(2);
  });

  test('is the stored one while a stored delivery has not ended', () => {
    const view = sequence(inWork, { stored: stored(1, [follower(3)]) });
    expect(headInMemory(view)).toBeNull();
    expect(headInMemory({ ...view, endedTo: 3 })?.position).toBe(2);
  });

  test('is the stored one when nothing in memory has its attempt', () => {
    const view = sequence([entry(5)], { stored: stored(1, []), endedTo: 1 });
    expect(headInMemory(view)).toBeNull();
  });
});

describe('the stored deliveries of a key', () => {
  const NONE: ReadonlySet<string> = new Set();
  const free = (plan: readonly Follower[], changes: Partial<Stored> = {}) =>
    stored(1, plan, { blocker: null, ...changes });
  const decide = (
    of: Stored | null,
    entries: readonly EntryView[] = [],
    released: ReadonlySet<string> = NONE,
  ) => {
    const refill = decideRefill(sequence(entries, { stored: of }), released);
    return refill.kind === 'publish'
      ? refill.followers.map(({ position }) => position)
      : refill.kind;
  };
  const positions = (from: number, to: number): number[] =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const plan = (from: number, to: number): Follower[] =>
    positions(from, to).map((position) => follower(position));
  const begun = (position: number): EntryView => entry(position, { state: 'begun' });

  test('are published when everything in front of them has ended', () => {
    expect(decide(free(plan(2, 4)))).toEqual([2, 3, 4]);
  });

  test.each([
    ['nothing is stored', null, []],
    ['the head has not ended', stored(1, plan(2, 4)), []],
    ['one in memory is in front of them', free(plan(2, 4)), [entry(1)]],
    ['a retry of the first one is in memory', free(plan(2, 4)), [entry(2, { attemptNumber: 2 })]],
  ])('wait while %s', (_what, of, entries) => {
    expect(decide(of, entries)).toBe('nothing');
  });

  test('are published behind the first attempt of the first one', () => {
    expect(decide(free(plan(2, 4)), [begun(2)])).toEqual([3, 4]);
  });

  test('are published up to one that has its attempts, or is on hold', () => {
    expect(decide(free([follower(2), follower(3, null), follower(4)]))).toEqual([2]);
    expect(decide(free([follower(2, 'hold'), follower(3)]))).toEqual([]);
  });

  test('are published once', () => {
    expect(decide(free(plan(2, 4)), [], new Set([idAt(2), idAt(3)]))).toEqual([4]);
  });

  test('are refilled when eight of them are left in memory', () => {
    const inMemory = positions(2, 10).map(begun);
    expect(decide(free(plan(2, 17)), inMemory)).toBe('nothing');
    expect(decide(free(plan(3, 18)), inMemory.slice(1))).toEqual(positions(11, 18));
  });

  test.each([
    [9, false],
    [8, true],
  ])(
    'are read again when others may be stored behind the %i that are left: %s',
    (left, isAgain) => {
      const part = free(plan(2, left + 1), { isWhole: false });
      const refill = decideRefill(sequence([], { stored: part }), NONE);
      expect(refill).toMatchObject({ kind: 'publish', isReadAgain: isAgain });
      const whole = decideRefill(sequence([], { stored: { ...part, isWhole: true } }), NONE);
      expect(whole).toMatchObject({ kind: 'publish', isReadAgain: false });
    },
  );

  test('are read again when all that were read have ended and others may be stored', () => {
    expect(decide(free([], { isWhole: false }))).toBe('read_again');
  });

  test('are deleted with their sequence when none is left, in memory neither', () => {
    expect(decide(free([]))).toBe('delete');
    expect(decide(free([]), [entry(1, { state: 'ended' })])).toBe('delete');
    expect(decide(free([]), [begun(1)])).toBe('nothing');
  });
});
