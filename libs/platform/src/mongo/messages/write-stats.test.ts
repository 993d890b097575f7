import { beforeEach, describe, expect, test } from '@jest/globals';
import { WriteBehind } from './write-stats.ts';

interface Count {
  key: string;
  count: number;
}

let nowMs: number;
let written: Count[][];
let refuse: (counts: readonly Count[]) => readonly Count[];
let behind: WriteBehind<Count>;

beforeEach(() => {
  [nowMs, written, refuse] = [0, [], () => []];
  behind = open(1_000);
});

function open(maxSums: number): WriteBehind<Count> {
  return new WriteBehind<Count>({
    budgetBytes: maxSums * 10,
    valueBytes: 10,
    write: (counts) => {
      const refused = refuse(counts);
      written.push(counts.filter((each) => !refused.includes(each)).map((each) => ({ ...each })));
      return Promise.resolve(refused);
    },
    add: (sum, more) => (sum.count += more.count),
    keyOf: ({ key }) => key,
    monotonicMs: () => nowMs,
  });
}

/** Returns false when there was no room. */
function add(key: string, count = 1): boolean {
  const sum = behind.sumOf(key, () => ({ key, count: 0 }));
  if (sum) sum.count += count;
  return sum !== null;
}

describe('counts that are written behind', () => {
  test('are one write for everything of a key within five seconds', async () => {
    for (let n = 0; n < 50; n += 1) add('a');
    nowMs = 4_999;
    await behind.tick();
    expect(written).toEqual([]);
    nowMs = 5_000;
    await behind.tick();
    expect(written).toEqual([[{ key: 'a', count: 50 }]]);
    expect(behind.usedBytes()).toBe(0);
  });

  test('of many keys are written a hundred in each round, oldest first', async () => {
    for (let n = 0; n < 250; n += 1) add(`key${n}`);
    nowMs = 5_000;
    for (let round = 0; round < 3; round += 1) await behind.tick();
    expect(written.map((counts) => counts.length)).toEqual([100, 100, 50]);
    expect(written[0]?.[0]?.key).toBe('key0');
  });

  test('are all written after 45 seconds', async () => {
    for (let n = 0; n < 250; n += 1) add(`key${n}`);
    nowMs = 45_000;
    await behind.tick();
    expect(written.map((counts) => counts.length)).toEqual([250]);
  });

  test('that were refused are written again with what came meanwhile', async () => {
    add('a', 2);
    add('b', 3);
    refuse = (counts) => counts.filter(({ key }) => key === 'b');
    nowMs = 5_000;
    await behind.tick();
    add('b', 4);
    refuse = () => [];
    nowMs = 10_000;
    await behind.tick();
    expect(written).toEqual([[{ key: 'a', count: 2 }], [{ key: 'b', count: 7 }]]);
  });

  test('stay while the store is away, and it is asked again after ten seconds', async () => {
    let calls = 0;
    refuse = () => {
      calls += 1;
      throw new Error('away');
    };
    add('a');
    nowMs = 5_000;
    await expect(behind.tick()).rejects.toThrow('away');
    add('a');
    nowMs = 14_999;
    await behind.tick();
    expect(calls).toBe(1);
    refuse = () => [];
    nowMs = 15_000;
    await behind.tick();
    expect(written).toEqual([[{ key: 'a', count: 2 }]]);
  });

  test('take no more memory than the budget, whether they wait or are being written', async () => {
    behind = open(2);
    expect([add('a'), add('b'), add('c'), add('a')]).toEqual([true, true, false, true]);
    nowMs = 5_000;
    const writing = behind.tick();
    expect(add('c')).toBe(false);
    expect(behind.usedBytes()).toBe(20);
    await writing;
    expect(add('c')).toBe(true);
  });

  test('are written at the stop whatever their age, and those that are not are returned', async () => {
    add('a', 2);
    expect(await behind.flush()).toEqual([]);
    expect(written).toEqual([[{ key: 'a', count: 2 }]]);
    add('b', 3);
    refuse = () => {
      throw new Error('away');
    };
    expect(await behind.flush()).toEqual([{ key: 'b', count: 3 }]);
  });
});
