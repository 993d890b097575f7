import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createContiguousOffsets } from './contiguous-offsets.ts';

/** The slow and obvious way: goes through everything that was ever begun. */
function createModel() {
  const begun: number[] = [];
  const done = new Set<number>();
  const abandoned = new Set<number>();
  const firstOpen = () => begun.findIndex((offset) => !done.has(offset));
  const prefix = () => (firstOpen() === -1 ? begun.length : firstOpen());
  return {
    begun,
    begin(offset: number) {
      if (begun.some((known) => known >= offset)) return false;
      begun.push(offset);
      return true;
    },
    finish: (offset: number) => {
      if (begun.includes(offset) && !abandoned.has(offset)) done.add(offset);
    },
    abandon: (offset: number) => {
      if (begun.includes(offset) && !done.has(offset)) abandoned.add(offset);
    },
    committable: () => (prefix() === 0 ? null : (begun[prefix() - 1] ?? 0) + 1),
    inFlight: () => begun.length - done.size - abandoned.size,
    uncommitted: () => begun.length - prefix(),
  };
}

/** Mostly none; now and then beyond the words and chunks of bits in which offsets are kept. */
const gap = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -3, max: 4 }) },
  { weight: 1, arbitrary: fc.integer({ min: 30, max: 5_000 }) },
);

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('begin'), gap }),
    fc.record({ kind: fc.constantFrom('finish', 'finish', 'abandon'), at: fc.nat(200) }),
  ),
  { maxLength: 200 },
);

describe('contiguous offsets', () => {
  test('agree with a naive model for any order, gaps and refetches', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const offsets = createContiguousOffsets();
        const model = createModel();
        for (const step of list) {
          if (step.kind === 'begin') {
            const offset = Math.max(0, (model.begun.at(-1) ?? -1) + step.gap);
            expect(offsets.begin(offset)).toBe(model.begin(offset));
          } else {
            const offset = model.begun[step.at % Math.max(1, model.begun.length)] ?? step.at;
            const end = step.kind;
            offsets[end](offset);
            model[end](offset);
          }
          expect(offsets.committable()).toBe(model.committable());
          expect(offsets.inFlight()).toBe(model.inFlight());
          expect(offsets.uncommitted()).toBe(model.uncommitted());
        }
      }),
    );
  });

  test('commit nothing while the oldest record is in flight', () => {
    const offsets = createContiguousOffsets();
    for (const offset of [10, 11, 15]) offsets.begin(offset);
    offsets.finish(15);
    offsets.finish(11);
    expect(offsets.committable()).toBeNull();
    expect(offsets.uncommitted()).toBe(3);
    offsets.finish(10);
    expect(offsets.committable()).toBe(16);
    expect(offsets.uncommitted()).toBe(0);
  });

  test('begin a refetched record only once, also after it is done', () => {
    const offsets = createContiguousOffsets();
    expect(offsets.begin(5)).toBe(true);
    expect(offsets.begin(5)).toBe(false);
    offsets.finish(5);
    expect(offsets.begin(5)).toBe(false);
    expect(offsets.begin(4)).toBe(false);
  });

  test('count a record once that finishes twice', () => {
    const offsets = createContiguousOffsets();
    for (const offset of [0, 1, 2]) offsets.begin(offset);
    offsets.finish(1);
    offsets.finish(1);
    expect(offsets.inFlight()).toBe(2);
  });

  test('never commit past an abandoned record, and no longer count it as in flight', () => {
    const offsets = createContiguousOffsets();
    for (const offset of [0, 1, 2]) offsets.begin(offset);
    for (const offset of [0, 2]) offsets.finish(offset);
    offsets.abandon(1);
    offsets.finish(1);
    expect([offsets.committable(), offsets.inFlight(), offsets.uncommitted()]).toEqual([1, 0, 2]);
  });

  test('ignore the end of a record that was never begun', () => {
    const offsets = createContiguousOffsets();
    offsets.finish(3);
    expect([offsets.committable(), offsets.inFlight()]).toEqual([null, 0]);
  });
});
