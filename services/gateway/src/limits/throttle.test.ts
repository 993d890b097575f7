import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createThrottle, createThrottledQueue, excessOf, nextFactor } from './throttle.ts';

describe('the throttle', () => {
  const BUSY = 0.9;

  function setUp() {
    let nowMs = 10_000;
    const throttle = createThrottle(() => nowMs);
    const pass = (ms: number): void => void (nowMs += ms);
    /** So many tenths of a second in which the process was so busy. */
    const ticks = (count: number, busyPart: number): void => {
      for (let n = 0; n < count; n += 1) {
        pass(100);
        throttle.tick(busyPart);
      }
    };
    /** Until companies wait 16 times as long as they worked. */
    const beBusy = (companies: readonly string[]): void => {
      for (let n = 0; n < 20; n += 1) {
        for (const companyId of companies) throttle.note(companyId);
        ticks(1, BUSY);
      }
    };
    return { throttle, pass, ticks, beBusy };
  }

  describe('a company', () => {
    test('that is alone never waits, however busy the process is', () => {
      const { throttle, beBusy } = setUp();
      beBusy(['comp_a']);
      throttle.charge('comp_a', 100);
      expect(throttle.waitMs('comp_a')).toBe(0);
    });

    test('that does all the work of a busy process waits when another one is present', () => {
      const { throttle, pass, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      throttle.charge('comp_a', 10);
      expect([throttle.waitMs('comp_a'), throttle.waitMs('comp_b')]).toEqual([80, 0]);
      pass(30);
      expect(throttle.waitMs('comp_a')).toBe(50);
      pass(50);
      expect(throttle.waitMs('comp_a')).toBe(0);
    });

    test('does not wait while the process has time', () => {
      const { throttle, ticks } = setUp();
      for (const companyId of ['comp_a', 'comp_b']) throttle.note(companyId);
      ticks(1, 0.4);
      throttle.charge('comp_a', 100);
      expect(throttle.waitMs('comp_a')).toBe(0);
    });

    test('does not wait when all work alike', () => {
      const { throttle, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      throttle.charge('comp_b', 10);
      throttle.charge('comp_a', 10);
      expect([throttle.waitMs('comp_a'), throttle.waitMs('comp_b')]).toEqual([0, 80]);
      throttle.charge('comp_b', 1);
      expect(throttle.waitMs('comp_b')).toBeLessThan(82);
    });

    test('waits no more once the process is calm', () => {
      const { throttle, beBusy, ticks } = setUp();
      beBusy(['comp_a', 'comp_b']);
      throttle.charge('comp_a', 10_000);
      expect(throttle.waitMs('comp_a')).toBe(2_000);
      ticks(26, 0.1);
      throttle.charge('comp_a', 10);
      expect(throttle.waitMs('comp_a')).toBe(0);
    });

    test('is forgotten a second after its last request, so that the other one is alone', () => {
      const { throttle, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      beBusy(['comp_a']);
      throttle.charge('comp_a', 10);
      expect(throttle.waitMs('comp_a')).toBe(0);
    });

    test('pauses after a part of earlier work for as long as that took, when others are present', () => {
      const { throttle } = setUp();
      throttle.note('comp_a');
      expect(throttle.pauseMs('comp_a', 4)).toBe(0);
      throttle.note('comp_b');
      expect([throttle.pauseMs('comp_a', 4), throttle.pauseMs('comp_gone', 4)]).toEqual([4, 4]);
    });

    test('pauses four times as long in a busy process', () => {
      const { throttle, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      expect(throttle.pauseMs('comp_a', 4)).toBe(16);
    });

    test('pays one millisecond for 32 KiB', () => {
      const { throttle, beBusy } = setUp();
      beBusy(['comp_a', 'comp_b']);
      throttle.chargeBytes('comp_a', 65_536);
      expect(throttle.waitMs('comp_a')).toBe(16);
    });
  });
});

const after = (busyParts: readonly number[], factor = 0): number =>
  busyParts.reduce(nextFactor, factor);

describe('the wait of companies', () => {
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

describe('the throttled queue', () => {
  function setUp() {
    const waits = new Map<string, number>();
    const timers: { ms: number; run: () => void }[] = [];
    const released: string[] = [];
    let asked = 0;
    const waitMs = (companyId: string): number => {
      asked += 1;
      return waits.get(companyId) ?? 0;
    };
    const queue = createThrottledQueue<string>({
      waitMs,
      mayGo: (companyId) => waitMs(companyId) === 0,
      after: (ms, run) => void timers.push({ ms, run }),
      release: (item) => void released.push(item),
    });
    const passTimer = (): number => {
      const timer = timers.shift();
      timer?.run();
      return timer?.ms ?? -1;
    };
    return { waits, timers, released, queue, passTimer, asked: () => asked };
  }

  test('releases one item at a time, in order, each after the wait of its company', () => {
    const { queue, waits, released, passTimer } = setUp();
    waits.set('comp_a', 7.2);
    for (const item of ['a1', 'a2', 'a3']) queue.add('comp_a', item);
    waits.set('comp_a', 0);
    expect(passTimer()).toBe(8);
    expect(released).toEqual(['a1']);
    waits.set('comp_a', 30);
    passTimer();
    expect(released).toEqual(['a1']);
    waits.set('comp_a', 0);
    passTimer();
    passTimer();
    expect([released, queue.size(), queue.has('comp_a')]).toEqual([['a1', 'a2', 'a3'], 0, false]);
  });

  test('releases an item that comes first before the others of its company', () => {
    const { queue, released, passTimer } = setUp();
    for (const item of ['a1', 'a2']) queue.add('comp_a', item);
    queue.add('comp_a', 'a0', 'first');
    for (let n = 0; n < 3; n += 1) passTimer();
    expect(released).toEqual(['a0', 'a1', 'a2']);
  });

  test('lets no company wait for another one, whichever came first', () => {
    const { queue, waits, released, timers } = setUp();
    waits.set('comp_a', 2_000);
    waits.set('comp_b', 20);
    queue.add('comp_a', 'a1');
    for (const item of ['b1', 'b2']) queue.add('comp_b', item);
    expect(timers.map(({ ms }) => ms)).toEqual([2_000, 20]);
    waits.set('comp_b', 0);
    timers[1]?.run();
    expect(released).toEqual(['b1']);
    expect(timers.map(({ ms }) => ms)).toEqual([2_000, 20, 1]);
  });

  test('holds an item without a look at the other companies', () => {
    const { queue, waits, asked } = setUp();
    for (let n = 0; n < 1_000; n += 1) {
      waits.set(`comp_${n}`, 5);
      queue.add(`comp_${n}`, 'item');
    }
    expect([queue.size(), asked()]).toEqual([1_000, 1_000]);
  });

  test('releases everything at its end, and what comes later at once', () => {
    const { queue, waits, released, passTimer } = setUp();
    waits.set('comp_a', 5);
    for (const item of ['a1', 'a2']) queue.add('comp_a', item);
    queue.end();
    queue.add('comp_a', 'a3');
    passTimer();
    expect([released, queue.size()]).toEqual([['a1', 'a2', 'a3'], 0]);
  });
});
