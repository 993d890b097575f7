import { beforeEach, describe, expect, test } from '@jest/globals';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createLeftToStore, type LeftToStore } from './left-to-store.ts';

const BYTES = 1_000;
let left: LeftToStore;

beforeEach(() => {
  left = createLeftToStore(() => BYTES);
});

const idOf = (number: number): string => `msg_0000000000000000000000000${number}`;
const message = (number: number, companyId = 'comp_a') =>
  sampleMessage(idOf(number), { companyId, createdAtMs: number });

describe('what is left to the store', () => {
  test('is nothing at first', () => {
    expect([left.has('comp_a'), left.readTo(), left.oldestAtMs()]).toEqual([false, null, null]);
  });

  test('is everything of a company from the first message that did not fit', () => {
    left.leave(message(3), idOf(2));
    expect([left.has('comp_a'), left.has('comp_b')]).toEqual([true, false]);
    const asked = [message(2), message(3), message(4), message(4, 'comp_b')];
    expect(asked.map(left.isLeft)).toEqual([false, true, true, false]);
    expect([left.readTo(), left.oldestAtMs()]).toEqual([idOf(2), 3]);
  });

  test('is read from the first of all companies on, and ends at the last', () => {
    left.leave(message(3), idOf(2));
    left.leave(message(5, 'comp_b'), idOf(4));
    expect([left.readTo(), left.lastId()]).toEqual([idOf(2), idOf(5)]);
    left.read(idOf(4), 4);
    expect([left.readTo(), left.oldestAtMs()]).toEqual([idOf(4), 4]);
    left.read(idOf(5), 5);
    expect([left.readTo(), left.has('comp_a'), left.has('comp_b')]).toEqual([null, false, false]);
  });

  test('is read in pages of as many as fit, from 1 to 200', () => {
    left.leave(message(3), idOf(2));
    expect([10, 12_500, 10_000_000].map(left.pageLimit)).toEqual([1, 12, 200]);
  });
});
