import { beforeEach, describe, expect, it, jest, test } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import { createClosingCache, CoalescingCache } from './coalescing-cache.ts';

interface Found {
  name: string;
}

function create(maxSize = 10, monotonicMs = () => performance.now()) {
  return new CoalescingCache<Found>({ maxSize, sizeOf: () => 1, ttlMs: 60_000, monotonicMs });
}

/** A load that the test ends. */
function openLoad() {
  let end: (found: Found | null) => void = () => undefined;
  let loads = 0;
  return {
    loads: () => loads,
    end: (found: Found | null) => {
      end(found);
    },
    load: () => {
      loads += 1;
      return new Promise<Found | null>((resolve) => (end = resolve));
    },
  };
}

describe('a cache that shares look-ups', () => {
  it('loads once for all concurrent look-ups, and caches what was found', async () => {
    const cache = create();
    const { load, loads, end } = openLoad();
    const asked = [cache.get('a', load), cache.get('a', load)];
    end({ name: 'x' });
    expect(await Promise.all(asked)).toEqual([{ name: 'x' }, { name: 'x' }]);
    expect(await cache.get('a', load)).toEqual({ name: 'x' });
    expect(loads()).toBe(1);
  });

  it('does not cache that nothing was found', async () => {
    const cache = create();
    expect(await cache.get('a', () => Promise.resolve(null))).toBeNull();
    expect(await cache.get('a', () => Promise.resolve({ name: 'new' }))).toEqual({ name: 'new' });
  });

  it('does not cache a failure, and rejects every look-up that waited for it', async () => {
    const cache = create();
    const fail = () => Promise.reject(new Error('away'));
    await expect(cache.get('a', fail)).rejects.toThrow('away');
    expect(await cache.get('a', () => Promise.resolve({ name: 'x' }))).toEqual({ name: 'x' });
  });

  it.each([{ name: 'old' }, null])(
    'resolves look-ups from before a change with %j, and loads again for later ones',
    async (before) => {
      const cache = create();
      const { load, end } = openLoad();
      const asked = cache.get('a', load);
      cache.forget('a');
      end(before);
      expect(await asked).toEqual(before);
      expect(await cache.get('a', () => Promise.resolve({ name: 'new' }))).toEqual({ name: 'new' });
    },
  );

  it('resolves every look-up, even when more run than it can keep', async () => {
    const cache = create(2);
    const names = Array.from({ length: 50 }, (_, n) => `k${n}`);
    const found = names.map((name) => cache.get(name, () => Promise.resolve({ name })));
    expect((await Promise.all(found)).map((each) => each?.name)).toEqual(names);
  });

  it('returns the size of what it caches, and caches no more than its limit', async () => {
    const cache = new CoalescingCache<Found>({ maxSize: 10, sizeOf: ({ name }) => name.length });
    const ask = (name: string) => cache.get(name, () => Promise.resolve({ name }));
    await ask('abc');
    await ask('abcdef');
    expect(cache.usedSize()).toBe(9);
    await ask('xy');
    expect(cache.usedSize()).toBe(8);
    cache.forget('xy');
    expect(cache.usedSize()).toBe(6);
    cache.forgetAll();
    expect(cache.usedSize()).toBe(0);
  });

  it('caches each value for the time that the value gives', async () => {
    let nowMs = 1;
    const cache = new CoalescingCache<{ ttlMs: number }>({
      maxSize: 10,
      sizeOf: () => 1,
      ttlMs: (value) => value.ttlMs,
      monotonicMs: () => nowMs,
    });
    const ask = (ttlMs: number) => cache.get(String(ttlMs), () => Promise.resolve({ ttlMs }));
    const [short, long] = [await ask(1_000), await ask(5_000)];
    nowMs += 2_000;
    expect(await ask(1_000)).not.toBe(short);
    expect(await ask(5_000)).toBe(long);
  });

  it('counts the time of a value that may be followed from the beginning of its load', async () => {
    let nowMs = 1;
    const cache = new CoalescingCache<Found>({
      maxSize: 10,
      sizeOf: () => 1,
      ttlMs: 2_000,
      isFollowed: () => false,
      monotonicMs: () => nowMs,
    });
    const loadFor = (ms: number, name: string) => () => {
      nowMs += ms;
      return Promise.resolve({ name });
    };
    await cache.get('slow', loadFor(5_000, 'old'));
    expect(await cache.get('slow', loadFor(0, 'new'))).toEqual({ name: 'new' });
  });

  it('shares no load of a value that may be followed once it has run for longer than such a value is kept', async () => {
    let nowMs = 1;
    const cache = new CoalescingCache<Found>({
      maxSize: 10,
      sizeOf: () => 1,
      ttlMs: 2_000,
      isFollowed: () => false,
      monotonicMs: () => nowMs,
    });
    const { load, loads, end } = openLoad();
    const first = cache.get('a', load);
    nowMs += 2_000;
    const shared = cache.get('a', load);
    nowMs += 1;
    const later = cache.get('a', () => Promise.resolve({ name: 'new' }));
    expect([loads(), await later]).toEqual([1, { name: 'new' }]);
    end({ name: 'old' });
    expect(await Promise.all([first, shared])).toEqual([{ name: 'old' }, { name: 'old' }]);
    expect(await cache.get('a', load)).toEqual({ name: 'new' });
  });

  describe('while changes are followed', () => {
    let nowMs: number;
    let isFollowed: boolean;
    let loads: number;

    const open = () => {
      [nowMs, isFollowed, loads] = [1, true, 0];
      return new CoalescingCache<{ sources: string[] }>({
        maxSize: 2,
        sizeOf: () => 1,
        ttlMs: 2_000,
        isFollowed: () => isFollowed,
        sourcesOf: ({ sources }) => sources,
        monotonicMs: () => nowMs,
      });
    };
    const loadOf = (sources: string[]) => () => {
      loads += 1;
      return Promise.resolve({ sources });
    };

    it('caches values for longer than their time, and drops them when that ends', async () => {
      const cache = open();
      await cache.get('a', loadOf([]));
      nowMs += 60_000;
      await cache.get('a', loadOf([]));
      expect([loads, cache.counts()]).toEqual([1, { hit: 1, miss: 1 }]);
      isFollowed = false;
      await cache.get('a', loadOf([]));
      expect(loads).toBe(2);
      nowMs += 1_000;
      await cache.get('a', loadOf([]));
      expect(loads).toBe(2);
    });

    it('drops each value that a changed document is a source of', async () => {
      const cache = open();
      await cache.get('a', loadOf(['x', 'y']));
      await cache.get('b', loadOf(['y']));
      cache.forget('x');
      await cache.get('b', loadOf(['y']));
      expect(loads).toBe(2);
      await cache.get('a', loadOf(['x', 'y']));
      cache.forget('y');
      expect(cache.usedSize()).toBe(0);
    });

    it('caches no value of which a source has changed while it was loaded', async () => {
      const cache = open();
      let end = (): void => undefined;
      const slow = cache.get('a', () => {
        return new Promise((resolve) => {
          end = () => {
            resolve({ sources: ['x'] });
          };
        });
      });
      cache.forget('x');
      end();
      expect(await slow).toEqual({ sources: ['x'] });
      await cache.get('a', loadOf(['x']));
      expect(loads).toBe(1);
      await cache.get('a', loadOf(['x']));
      expect(loads).toBe(1);
    });
  });

  describe('a look-up that joins a running load', () => {
    interface Listed {
      sources: string[];
    }
    const ends: ((found: Listed | null) => void)[] = [];
    const load = () => new Promise<Listed | null>((resolve) => ends.push(resolve));
    let cache: CoalescingCache<Listed>;

    beforeEach(() => {
      ends.length = 0;
      cache = new CoalescingCache<Listed>({
        maxSize: 10,
        sizeOf: () => 1,
        ttlMs: 60_000,
        sourcesOf: ({ sources }) => sources,
      });
    });
    async function endLoad(found: Listed | null): Promise<void> {
      ends.shift()?.(found);
      await setImmediate();
    }

    it.each([{ sources: ['app'] }, null])(
      'after a change of what it finds loads again, once for all: %j',
      async (old) => {
        const before = cache.get('a', load);
        cache.forget('app');
        const after = [cache.get('a', load), cache.get('a', load)];
        await endLoad(old);
        expect(await before).toEqual(old);
        expect(ends).toHaveLength(1);
        const found = { sources: ['app', 'new'] };
        await endLoad(found);
        expect(await Promise.all(after)).toEqual([found, found]);
        expect(await cache.get('a', load)).toBe(found);
      },
    );

    it('shares it when something else has changed', async () => {
      const asked = [cache.get('a', load)];
      cache.forget('other');
      asked.push(cache.get('a', load));
      const found = { sources: ['app'] };
      await endLoad(found);
      expect(await Promise.all(asked)).toEqual([found, found]);
      expect(ends).toHaveLength(0);
    });
  });

  it('drops expired values although nobody asks for them again', async () => {
    jest.useFakeTimers();
    try {
      const cache = create(10, Date.now);
      await cache.get('a', () => Promise.resolve({ name: 'x' }));
      await jest.advanceTimersByTimeAsync(59_000);
      expect(cache.usedSize()).toBe(1);
      await jest.advanceTimersByTimeAsync(12_000);
      expect(cache.usedSize()).toBe(0);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});

test('a closing cache closes what was used least recently when too many are open', () => {
  const closed: string[] = [];
  const cache = createClosingCache<{ name: string }>(2, ({ name }) => closed.push(name));
  const use = (name: string) => cache.get(name, () => ({ name }));
  const first = use('a');
  use('b');
  expect(use('a')).toBe(first);
  use('c');
  expect(closed).toEqual(['b']);
});
