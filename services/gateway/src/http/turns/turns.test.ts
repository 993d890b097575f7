import { describe, expect, test } from '@jest/globals';
import { createTurns, inTurns } from './turns.ts';

/** Rounds of an event loop that a test starts. */
function manualRounds() {
  let next: (() => void)[] = [];
  return {
    inNextRound: (run: () => void) => void next.push(run),
    async run() {
      const now = next;
      next = [];
      for (const each of now) {
        each();
        await new Promise(setImmediate);
      }
    },
  };
}

function setUp() {
  const rounds = manualRounds();
  let nowMs = 0;
  const rests = new Map<string, number>();
  const timers: (() => void)[] = [];
  const charged: [string, number][] = [];
  const turns = createTurns({
    inNextRound: rounds.inNextRound,
    after: (_ms, run) => void timers.push(run),
    rests: {
      restMs: (companyId) => rests.get(companyId) ?? 0,
      charge: (companyId, workMs) => void charged.push([companyId, workMs]),
    },
    monotonicMs: () => nowMs,
  });
  const begun: string[] = [];
  const work = async (companyId: string, name: string, takesMs = 0): Promise<void> => {
    await turns.take(companyId);
    begun.push(name);
    nowMs += takesMs;
  };
  return { rounds, turns, begun, work, rests, timers, charged };
}

describe('turns', () => {
  test('begin short pieces of work in one round, eight at most', async () => {
    const { rounds, begun, work, turns } = setUp();
    const names = Array.from({ length: 10 }, (_, n) => `a${n}`);
    for (const name of names) void work('comp_a', name);
    expect(begun).toEqual([]);
    await rounds.run();
    expect([begun, turns.waiting()]).toEqual([names.slice(0, 8), 2]);
    await rounds.run();
    expect(begun).toEqual(names);
  });

  test('begin no more in a round once its pieces have taken 4 ms', async () => {
    const { rounds, begun, work } = setUp();
    for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name, 3);
    await rounds.run();
    expect(begun).toEqual(['a1', 'a2']);
    await rounds.run();
    expect(begun).toEqual(['a1', 'a2', 'a3']);
  });

  test('go round the companies, however much one of them has waiting', async () => {
    const { rounds, begun, work } = setUp();
    for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name, 2);
    void work('comp_b', 'b1', 2);
    await rounds.run();
    expect(begun).toEqual(['a1', 'b1']);
  });

  test('are shared by the time that they take, not by their number', async () => {
    const { rounds, begun, work } = setUp();
    for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name, 4);
    for (const name of ['b1', 'b2', 'b3']) void work('comp_b', name, 0.1);
    await rounds.run();
    await rounds.run();
    expect(begun).toEqual(['a1', 'b1', 'b2', 'b3', 'a2']);
  });

  test('of a company that rests come afterwards, and what they took is charged', async () => {
    const { rounds, turns, begun, work, rests, timers, charged } = setUp();
    rests.set('comp_a', 10);
    void work('comp_a', 'a1', 2);
    void work('comp_b', 'b1', 1);
    await rounds.run();
    expect([begun, turns.waiting()]).toEqual([['b1'], 1]);
    rests.set('comp_a', 0);
    timers.shift()?.();
    await rounds.run();
    await rounds.run();
    expect(begun).toEqual(['b1', 'a1']);
    expect(charged).toEqual([
      ['comp_b', 1],
      ['comp_a', 2],
    ]);
  });

  test('begin again when work comes after a pause', async () => {
    const { rounds, begun, work } = setUp();
    void work('comp_a', 'a1');
    await rounds.run();
    await rounds.run();
    void work('comp_a', 'a2');
    await rounds.run();
    expect(begun).toEqual(['a1', 'a2']);
  });
});

describe('parts that are read in turns', () => {
  async function* numbers(onEnd: () => void): AsyncGenerator<number> {
    try {
      for (const each of [1, 2, 3]) yield await Promise.resolve(each);
    } finally {
      onEnd();
    }
  }

  test('are the same parts, each after a turn', async () => {
    let taken = 0;
    const takeTurn = () => Promise.resolve(void (taken += 1));
    const read: [number, number][] = [];
    for await (const part of inTurns(
      numbers(() => undefined),
      takeTurn,
    ))
      read.push([part, taken]);
    expect(read).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
  });

  test('end the reading when the reader stops early', async () => {
    let hasEnded = false;
    const parts = inTurns(
      numbers(() => {
        hasEnded = true;
      }),
      () => Promise.resolve(),
    );
    for await (const part of parts) if (part === 1) break;
    expect(hasEnded).toBe(true);
  });
});
