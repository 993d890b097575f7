import { beforeEach, describe, expect, test } from '@jest/globals';
import { createMemoryLeases } from '../../../../test/support/memory/memory-leases.ts';
import { type CompanyRemovalsDeps, createCompanyRemovals, QUIET_MS } from './company-removal.ts';

/** How many documents each company that is being removed still has. */
let left: Map<string, number>;
let steps: string[];
let leases: ReturnType<typeof createMemoryLeases>;

beforeEach(() => {
  [left, steps, leases] = [new Map([['comp_1', 1_500]]), [], createMemoryLeases()];
});

const logger = { info: () => undefined, warn: () => undefined };

function removals(holder: string, overrides: Partial<CompanyRemovalsDeps> = {}) {
  return createCompanyRemovals({
    holder,
    leases,
    logger,
    companies: {
      listRemovable: (forMs) => Promise.resolve(forMs === QUIET_MS ? [...left.keys()] : []),
      endRemoval: (id) => Promise.resolve(void left.delete(id)),
    },
    documents: { removeSome },
    ...overrides,
  });
}

function removeSome(companyId: string, limit: number): Promise<number> {
  const before = left.get(companyId) ?? 0;
  const removed = Math.min(before, limit);
  steps.push(`${companyId} ${removed}`);
  left.set(companyId, before - removed);
  return Promise.resolve(removed);
}

describe('a company that is being removed', () => {
  test('goes in steps, and itself in the round that finds nothing else', async () => {
    const { tick } = removals('a');
    await tick();
    expect(steps).toEqual(['comp_1 1000', 'comp_1 500', 'comp_1 0']);
    expect([...left]).toEqual([['comp_1', 0]]);
    left.set('comp_1', 1);
    await tick();
    expect(left.has('comp_1')).toBe(true);
    await tick();
    expect([left.size, leases.holders.size]).toEqual([0, 0]);
  });

  test('is left to the process that holds it', async () => {
    await leases.hold('company-removal', 'b');
    await removals('a').tick();
    expect(steps).toEqual([]);
  });

  test('does not keep others from being removed when it fails, and is tried again', async () => {
    left.set('comp_2', 1);
    let failures = 1;
    const { tick } = removals('a', {
      documents: {
        removeSome: (id, limit) => {
          if (id === 'comp_1' && (failures -= 1) >= 0) return Promise.reject(new Error('away'));
          return removeSome(id, limit);
        },
      },
    });
    await tick();
    expect([...left]).toEqual([
      ['comp_1', 1_500],
      ['comp_2', 0],
    ]);
    await tick();
    await tick();
    expect(left.size).toBe(0);
  });

  test('is continued by the next process when this one stops', async () => {
    const first = removals('a', {
      documents: {
        async removeSome(id, limit) {
          const removed = await removeSome(id, limit);
          void first.stop();
          return removed;
        },
      },
    });
    await first.tick();
    expect(left.get('comp_1')).toBe(500);
    leases.holders.clear();
    const second = removals('b');
    await second.tick();
    await second.tick();
    expect(left.size).toBe(0);
  });
});
