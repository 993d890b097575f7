import { describe, expect, it } from '@jest/globals';
import {
  readOn,
  resumeReadingAt,
  startReadingAt,
  wasSetBack,
  type ReadingPosition,
} from './reading-position.ts';

/** Reads batches, given by their first offset and the offset after what was taken; returns where reading was set back. */
function setBackAmong(position: ReadingPosition, batches: [number, number][]): number[] {
  return batches.flatMap(([firstOffset, readTo]) => {
    if (wasSetBack(position, firstOffset)) return [firstOffset];
    if (readTo > firstOffset) readOn(position, readTo);
    return [];
  });
}

const TWICE: [number, number][] = [
  [0, 2],
  [0, 2],
];

describe('reading a partition', () => {
  it('is not set back from batch to batch, nor by a record that is not due', () => {
    const batches: [number, number][] = [
      [5, 8],
      [8, 8],
      [8, 9],
      [9, 20],
    ];
    expect(setBackAmong(startReadingAt(5), batches)).toEqual([]);
  });

  it('is set back where the partition has lost what was read', () => {
    expect(setBackAmong(startReadingAt(0), TWICE)).toEqual([0]);
  });

  it('is not set back by a fetch from before the change of the group', () => {
    const batches: [number, number][] = [
      [20, 25],
      [5, 8],
      [25, 30],
    ];
    expect(setBackAmong(resumeReadingAt(5), batches)).toEqual([]);
  });

  it('is not set back by such a fetch either when the next batch begins with a record that is not due', () => {
    const batches: [number, number][] = [
      [20, 25],
      [5, 5],
      [5, 8],
      [25, 30],
    ];
    expect(setBackAmong(resumeReadingAt(5), batches)).toEqual([]);
  });

  it('is set back after a change of the group too', () => {
    expect(setBackAmong(resumeReadingAt(5), [[4, 6]])).toEqual([4]);
    const batches: [number, number][] = [
      [5, 8],
      [8, 12],
      [6, 9],
    ];
    expect(setBackAmong(resumeReadingAt(5), batches)).toEqual([6]);
  });
});
