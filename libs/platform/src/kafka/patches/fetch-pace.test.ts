import { expect, it } from '@jest/globals';
import { FetchPace } from './fetch-pace.ts';

it('a fetch after few records waits for more, and one after many or none does not', () => {
  const pace = new FetchPace();
  const restAfter = (records: number): number => {
    pace.answered(1, records, 1_000);
    return pace.restMs(1, 1_004);
  };
  expect([0, 1, 99, 100].map(restAfter)).toEqual([0, 6, 6, 0]);
  pace.answered(1, 1, 1_000);
  expect([pace.restMs(2, 1_000), pace.restMs(1, 1_011)]).toEqual([0, 0]);
});
