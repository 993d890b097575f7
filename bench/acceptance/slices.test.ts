import { expect, test } from '@jest/globals';
import { compareSlices } from './slices.ts';

/** Runs slices of this cost on a machine that becomes slower by `driftUs` with each slice. */
async function compare(costs: { one: number; other: number }, driftUs: number) {
  let [nowUs, slices] = [0, 0];
  const of = (costUs: number) => () => {
    nowUs += costUs + slices * driftUs;
    slices += 1;
    return Promise.resolve();
  };
  const pair = { one: of(costs.one), other: of(costs.other) };
  return compareSlices(pair, { pairs: 20, cpuUs: () => Promise.resolve(nowUs) });
}

test('slices are compared with their neighbours', async () => {
  expect(await compare({ one: 10, other: 12 }, 0)).toEqual({
    one: 10,
    other: 12,
    more: 2,
    between: [2, 2],
  });
});

test('a machine that becomes slower makes neither look cheaper', async () => {
  const { one, other, more, between } = await compare({ one: 10, other: 12 }, 1);
  expect(more).toBe(2);
  expect(between).toEqual([2, 2]);
  expect(other - one).toBe(2);
});
