import { describe, expect, test } from '@jest/globals';
import { createSlices, inSlices } from './slices.ts';

describe('slices', () => {
  /** Ticks of an event loop that a test starts. */
  function manualTicks() {
    let next: (() => void)[] = [];
    return {
      inNextTick: (run: () => void) => void next.push(run),
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
    const ticks = manualTicks();
    let nowMs = 0;
    const waits = new Map<string, number>();
    const timers: (() => void)[] = [];
    const charged: [string, number][] = [];
    const slices = createSlices({
      inNextTick: ticks.inNextTick,
      after: (_ms, run) => void timers.push(run),
      throttle: {
        waitMs: (companyId) => waits.get(companyId) ?? 0,
        charge: (companyId, workMs) => void charged.push([companyId, workMs]),
      },
      monotonicMs: () => nowMs,
    });
    const begun: string[] = [];
    const work = async (companyId: string, name: string, takesMs = 0): Promise<void> => {
      await slices.next(companyId);
      begun.push(name);
      nowMs += takesMs;
    };
    return { ticks, slices, begun, work, waits, timers, charged };
  }

  describe('slices', () => {
    test('begin together in one tick when they are short, eight at most', async () => {
      const { ticks, begun, work, slices } = setUp();
      const names = Array.from({ length: 10 }, (_, n) => `a${n}`);
      for (const name of names) void work('comp_a', name);
      expect(begun).toEqual([]);
      await ticks.run();
      expect([begun, slices.waiting()]).toEqual([names.slice(0, 8), 2]);
      await ticks.run();
      expect(begun).toEqual(names);
    });

    test('begin no more in a tick once those in it have taken 4 ms', async () => {
      const { ticks, begun, work } = setUp();
      for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name, 3);
      await ticks.run();
      expect(begun).toEqual(['a1', 'a2']);
      await ticks.run();
      expect(begun).toEqual(['a1', 'a2', 'a3']);
    });

    test('go round the companies, however much one of them has waiting', async () => {
      const { ticks, begun, work } = setUp();
      for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name, 2);
      void work('comp_b', 'b1', 2);
      await ticks.run();
      expect(begun).toEqual(['a1', 'b1']);
    });

    test('are shared by the time that they take, not by their number', async () => {
      const { ticks, begun, work } = setUp();
      for (const name of ['a1', 'a2', 'a3']) void work('comp_a', name, 4);
      for (const name of ['b1', 'b2', 'b3']) void work('comp_b', name, 0.1);
      await ticks.run();
      await ticks.run();
      expect(begun).toEqual(['a1', 'b1', 'b2', 'b3', 'a2']);
    });

    test('of a throttled company come afterwards, and what they took is charged', async () => {
      const { ticks, slices, begun, work, waits, timers, charged } = setUp();
      waits.set('comp_a', 10);
      void work('comp_a', 'a1', 2);
      void work('comp_b', 'b1', 1);
      await ticks.run();
      expect([begun, slices.waiting()]).toEqual([['b1'], 1]);
      waits.set('comp_a', 0);
      timers.shift()?.();
      await ticks.run();
      await ticks.run();
      expect(begun).toEqual(['b1', 'a1']);
      expect(charged).toEqual([
        ['comp_b', 1],
        ['comp_a', 2],
      ]);
    });

    test('begin again when work comes after a pause', async () => {
      const { ticks, begun, work } = setUp();
      void work('comp_a', 'a1');
      await ticks.run();
      await ticks.run();
      void work('comp_a', 'a2');
      await ticks.run();
      expect(begun).toEqual(['a1', 'a2']);
    });
  });

  describe('parts that are read in slices', () => {
    async function* numbers(onEnd: () => void): AsyncGenerator<number> {
      try {
        for (const each of [1, 2, 3]) yield await Promise.resolve(each);
      } finally {
        onEnd();
      }
    }

    test('are the same parts, each in a slice', async () => {
      let taken = 0;
      const nextSlice = () => Promise.resolve(void (taken += 1));
      const read: [number, number][] = [];
      for await (const part of inSlices(
        numbers(() => undefined),
        nextSlice,
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
      const parts = inSlices(
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
