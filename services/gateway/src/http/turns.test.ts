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
      for (const each of now) each();
      await new Promise(setImmediate);
    },
  };
}

function setUp() {
  const rounds = manualRounds();
  const turns = createTurns(rounds.inNextRound);
  const begun: string[] = [];
  const work = async (companyId: string, name: string): Promise<void> => {
    await turns.take(companyId);
    begun.push(name);
  };
  return { rounds, turns, begun, work };
}

describe('turns', () => {
  test('begin one piece of work in each round', async () => {
    const { rounds, begun, work, turns } = setUp();
    for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name);
    expect(begun).toEqual([]);
    await rounds.run();
    expect([begun, turns.waiting()]).toEqual([['a1'], 2]);
    await rounds.run();
    expect(begun).toEqual(['a1', 'a2']);
  });

  test('go round the companies, however much one of them has waiting', async () => {
    const { rounds, begun, work } = setUp();
    for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name);
    void work('comp_b', 'b1');
    await rounds.run();
    await rounds.run();
    expect(begun).toEqual(['a1', 'b1']);
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
