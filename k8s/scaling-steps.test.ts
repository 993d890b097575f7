import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { stepsExpression, stepsPatches } from './scaling-steps.ts';

/** Calculates the sum of an expression for one value of its metric. */
function valueOf(expression: string, needed: number): number {
  const terms = [
    ...expression.matchAll(/\+ (\d+) \* \(max by \(namespace\) \(m\) > bool (\d+)\)/g),
  ];
  return terms.reduce(
    (sum, [, more, step]) => sum + (needed > Number(step) ? Number(more) : 0),
    Number(expression.split('\n')[0]),
  );
}

describe('the steps of autoscaling', () => {
  it('are the smallest divisor of the partitions that is enough, and never more than all', () => {
    const partitions = fc.integer({ min: 2, max: 1_000 });
    const needed = fc.double({ min: 0, max: 1_100, noNaN: true });
    fc.assert(
      fc.property(partitions, needed, (count, wanted) => {
        const value = valueOf(stepsExpression('m', count), wanted);
        expect(count % value).toBe(0);
        expect(value).toBeGreaterThanOrEqual(Math.min(wanted, count));
        const below = Array.from({ length: value - 1 }, (_, index) => index + 1);
        expect(below.filter((each) => count % each === 0 && each >= wanted)).toEqual([]);
      }),
    );
  });

  it('are written as one sum', () => {
    expect(stepsExpression('m', 6)).toBe(
      '1\n' +
        '  + 1 * (max by (namespace) (m) > bool 1)\n' +
        '  + 1 * (max by (namespace) (m) > bool 2)\n' +
        '  + 3 * (max by (namespace) (m) > bool 3)\n',
    );
  });

  it('are 1 in each namespace with one partition', () => {
    expect(stepsExpression('m', 1)).toBe('max by (namespace) (m) > bool -1\n');
  });

  it.each([
    [36, { minReplicaCount: 2, maxReplicaCount: 36 }],
    [9, { minReplicaCount: 3, maxReplicaCount: 9 }],
  ])('of %d partitions come with limits that divide them', (partitions, limits) => {
    const [, ...scaledObjects] = stepsPatches(partitions);
    expect(scaledObjects).toMatchObject([{ spec: limits }, { spec: limits }]);
  });
});
