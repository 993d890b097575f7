import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createCompanyRests,
  createHeldPieces,
  createTurns,
  excessOf,
  inTurns,
  nextRestFactor,
} from './turns.ts';

describe('turns', () => {
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
});

describe('held pieces', () => {
  function setUp() {
    const rests = new Map<string, number>();
    const timers: { ms: number; run: () => void }[] = [];
    const released: string[] = [];
    let asked = 0;
    const held = createHeldPieces<string>({
      restMs(companyId) {
        asked += 1;
        return rests.get(companyId) ?? 0;
      },
      after: (ms, run) => void timers.push({ ms, run }),
      release: (piece) => void released.push(piece),
    });
    const passTimer = (): number => {
      const timer = timers.shift();
      timer?.run();
      return timer?.ms ?? -1;
    };
    return { rests, timers, released, held, passTimer, asked: () => asked };
  }

  describe('pieces of work', () => {
    test('of a company that may work are not held', () => {
      const { held, timers } = setUp();
      expect(held.tryHold('comp_a', 'a1')).toBe(false);
      expect([held.size(), timers]).toEqual([0, []]);
    });

    test('are released one at a time, in order, each after the rest of its company', () => {
      const { held, rests, released, passTimer } = setUp();
      rests.set('comp_a', 7.2);
      for (const piece of ['a1', 'a2']) expect(held.tryHold('comp_a', piece)).toBe(true);
      rests.set('comp_a', 0);
      expect(held.tryHold('comp_a', 'a3')).toBe(true);
      expect(passTimer()).toBe(8);
      expect(released).toEqual(['a1']);
      rests.set('comp_a', 30);
      passTimer();
      expect(released).toEqual(['a1']);
      rests.set('comp_a', 0);
      passTimer();
      passTimer();
      expect([released, held.size()]).toEqual([['a1', 'a2', 'a3'], 0]);
    });

    test('do not wait for a company that was held before and rests longer', () => {
      const { held, rests, released, timers } = setUp();
      rests.set('comp_a', 2_000);
      held.tryHold('comp_a', 'a1');
      rests.set('comp_b', 10);
      held.tryHold('comp_b', 'b1');
      expect(timers.map(({ ms }) => ms)).toEqual([2_000, 10]);
      rests.set('comp_b', 0);
      timers[1]?.run();
      expect(released).toEqual(['b1']);
    });

    test('wait for their own company, whichever has rested first', () => {
      const { held, rests, released, timers } = setUp();
      rests.set('comp_a', 50);
      rests.set('comp_b', 20);
      for (const piece of ['b1', 'b2']) held.tryHold('comp_b', piece);
      held.tryHold('comp_a', 'a1');
      expect(timers.map(({ ms }) => ms)).toEqual([20, 50]);
      rests.set('comp_b', 0);
      timers[0]?.run();
      expect(released).toEqual(['b1']);
      expect(timers.map(({ ms }) => ms)).toEqual([20, 50, 1]);
    });

    test('are held without a look at the other companies that rest', () => {
      const { held, rests, asked } = setUp();
      for (let n = 0; n < 1_000; n += 1) {
        rests.set(`comp_${n}`, 5);
        held.tryHold(`comp_${n}`, 'piece');
      }
      expect([held.size(), asked()]).toEqual([1_000, 2_000]);
    });
  });
});

describe('company rests', () => {
  const BUSY = 0.9;

  function setUp() {
    let nowMs = 10_000;
    const rests = createCompanyRests(() => nowMs);
    const pass = (ms: number): void => void (nowMs += ms);
    /** So many tenths of a second in which the process was so busy. */
    const ticks = (count: number, busyPart: number): void => {
      for (let n = 0; n < count; n += 1) {
        pass(100);
        rests.tick(busyPart);
      }
    };
    /** Until companies rest 16 times as long as they worked. */
    const beBusy = (companies: readonly string[]): void => {
      for (let n = 0; n < 20; n += 1) {
        for (const companyId of companies) rests.note(companyId);
        ticks(1, BUSY);
      }
    };
    return { rests, pass, ticks, beBusy };
  }

  describe('a company', () => {
    test('that is alone never rests, however busy the process is', () => {
      const { rests, beBusy } = setUp();
      beBusy(['comp_a']);
      rests.charge('comp_a', 100);
      expect(rests.restMs('comp_a')).toBe(0);
    });

    test('that does all the work of a busy process rests when another one is present', () => {
      const { rests, pass, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      rests.charge('comp_a', 10);
      expect([rests.restMs('comp_a'), rests.restMs('comp_b')]).toEqual([80, 0]);
      pass(30);
      expect(rests.restMs('comp_a')).toBe(50);
      pass(50);
      expect(rests.restMs('comp_a')).toBe(0);
    });

    test('does not rest while the process has time', () => {
      const { rests, ticks } = setUp();
      for (const companyId of ['comp_a', 'comp_b']) rests.note(companyId);
      ticks(1, 0.4);
      rests.charge('comp_a', 100);
      expect(rests.restMs('comp_a')).toBe(0);
    });

    test('does not rest when all work alike', () => {
      const { rests, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      rests.charge('comp_b', 10);
      rests.charge('comp_a', 10);
      expect([rests.restMs('comp_a'), rests.restMs('comp_b')]).toEqual([0, 80]);
      rests.charge('comp_b', 1);
      expect(rests.restMs('comp_b')).toBeLessThan(82);
    });

    test('rests no more once the process is calm', () => {
      const { rests, beBusy, ticks } = setUp();
      beBusy(['comp_a', 'comp_b']);
      rests.charge('comp_a', 10_000);
      expect(rests.restMs('comp_a')).toBe(2_000);
      ticks(26, 0.1);
      rests.charge('comp_a', 10);
      expect(rests.restMs('comp_a')).toBe(0);
    });

    test('is forgotten a second after its last request, so that the other one is alone', () => {
      const { rests, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      beBusy(['comp_a']);
      rests.charge('comp_a', 10);
      expect(rests.restMs('comp_a')).toBe(0);
    });

    test('pauses after a part of earlier work for as long as that took, when others are present', () => {
      const { rests } = setUp();
      rests.note('comp_a');
      expect(rests.pauseMs('comp_a', 4)).toBe(0);
      rests.note('comp_b');
      expect([rests.pauseMs('comp_a', 4), rests.pauseMs('comp_gone', 4)]).toEqual([4, 4]);
    });

    test('pauses four times as long in a busy process', () => {
      const { rests, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      expect(rests.pauseMs('comp_a', 4)).toBe(16);
    });

    test('pays one millisecond for 32 KiB', () => {
      const { rests, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      rests.chargeBytes('comp_a', 65_536);
      expect(rests.restMs('comp_a')).toBe(16);
    });
  });
});

const after = (busyParts: readonly number[], factor = 0): number =>
  busyParts.reduce(nextRestFactor, factor);

describe('the rest of companies', () => {
  test('is none while the process is busy for less than two fifths of the time', () => {
    expect(after([0, 0.2, 0.4, 0.4])).toBe(0);
  });

  test('grows while the process is busier, to 16 times the work', () => {
    const busy = Array.from({ length: 30 }, () => 0.9);
    expect(after(busy.slice(0, 2))).toBeCloseTo(0.25);
    expect(after(busy)).toBe(16);
  });

  test('stays while the process is busy for about a third', () => {
    expect(after([0.35, 0.4, 0.31], 3)).toBe(3);
  });

  test('ends within three seconds of calm', () => {
    expect(
      after(
        Array.from({ length: 26 }, () => 0.2),
        16,
      ),
    ).toBe(0);
  });
});

describe('the part of the work beyond the fair share', () => {
  test.each([
    ['alone', 1, 1, 0],
    ['with all of the work beside one that does nothing', 1, 2, 0.5],
    ['with all of the work beside 99', 1, 100, 0.99],
    ['with its fair share', 0.25, 4, 0],
    ['with less than its share', 0.1, 4, 0],
    ['without work', 0, 2, 0],
  ])('of a company %s', (_what, share, present, excess) => {
    expect(excessOf(share, present)).toBeCloseTo(excess);
  });

  test('is never less for a company that works more', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(share, share, fc.integer({ min: 1, max: 1_000 }), (one, other, present) => {
        const [less, more] = one < other ? [one, other] : [other, one];
        expect(excessOf(less, present)).toBeLessThanOrEqual(excessOf(more, present));
      }),
    );
  });
});
