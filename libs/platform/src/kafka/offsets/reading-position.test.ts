import { describe, expect, it } from '@jest/globals';
import { readOn, startReadingAt, wasSetBack } from './reading-position.ts';

/** Returns those of the batches, in this order, at which reading was set back. */
function setBackAmong(resumesAt: number, firstOffsets: number[]): number[] {
  let position = startReadingAt(resumesAt);
  return firstOffsets.filter((firstOffset) => {
    if (wasSetBack(position, firstOffset)) return true;
    position = readOn(position, firstOffset);
    return false;
  });
}

describe('reading a partition', () => {
  it.each([
    ['from batch to batch', [5, 8, 12, 15, 30]],
    ['again and again from a record that is not due', [5, 5, 5, 5, 6]],
    ['when a fetch from before the change comes first', [20, 5, 8, 12, 15]],
    ['when a fetch from before the change comes second', [5, 20, 8, 12, 15]],
  ])('is not set back %s', (_how, firstOffsets) => {
    expect(setBackAmong(5, firstOffsets)).toEqual([]);
  });

  it('is set back where the partition has lost what was read', () => {
    expect(setBackAmong(5, [5, 8, 12, 15, 9])).toEqual([9]);
  });

  it('is set back right after a change of the group where it resumes before the last commit', () => {
    expect(setBackAmong(5, [4])).toEqual([4]);
  });
});
