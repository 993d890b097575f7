import { beforeEach, describe, expect, test } from '@jest/globals';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createPublishOverflow, type PublishOverflow } from './publish-overflow.ts';

const BYTES = 1_000;
let overflow: PublishOverflow;

beforeEach(() => {
  overflow = createPublishOverflow(() => BYTES);
});

const idOf = (number: number): string => `msg_0000000000000000000000000${number}`;
const message = (number: number, companyId = 'comp_a') =>
  sampleMessage(idOf(number), { companyId, createdAtMs: number });

describe('the publish overflow', () => {
  test('is empty at first', () => {
    expect([overflow.hasCompany('comp_a'), overflow.readToId(), overflow.oldestAtMs()]).toEqual([
      false,
      null,
      null,
    ]);
  });

  test('has every message of a company from the first one that did not fit', () => {
    overflow.add(message(3), idOf(2));
    expect([overflow.hasCompany('comp_a'), overflow.hasCompany('comp_b')]).toEqual([true, false]);
    const asked = [message(2), message(3), message(4), message(4, 'comp_b')];
    expect(asked.map(overflow.hasMessage)).toEqual([false, true, true, false]);
    expect([overflow.readToId(), overflow.oldestAtMs()]).toEqual([idOf(2), 3]);
  });

  test('starts before the first message of any company and ends at the last', () => {
    overflow.add(message(3), idOf(2));
    overflow.add(message(5, 'comp_b'), idOf(4));
    expect([overflow.readToId(), overflow.lastId()]).toEqual([idOf(2), idOf(5)]);
    overflow.markRead(idOf(4), 4);
    expect([overflow.readToId(), overflow.oldestAtMs()]).toEqual([idOf(4), 4]);
    overflow.markRead(idOf(5), 5);
    expect([
      overflow.readToId(),
      overflow.hasCompany('comp_a'),
      overflow.hasCompany('comp_b'),
    ]).toEqual([null, false, false]);
  });

  test('has pages of as many messages as fit, from 1 to 200', () => {
    overflow.add(message(3), idOf(2));
    expect([10, 12_500, 10_000_000].map(overflow.pageLimit)).toEqual([1, 12, 200]);
  });
});
