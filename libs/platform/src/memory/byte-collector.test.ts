import { describe, expect, test } from '@jest/globals';
import { collectGarbage } from '../../../../test/support/process/collect-garbage.ts';
import { createByteCollector, type ByteCollector } from './byte-collector.ts';

const ONE = Buffer.from('x');

function addMany(collector: ByteCollector, chunk: Buffer, times: number): void {
  for (let n = 0; n < times; n += 1) collector.add(chunk);
}

describe('the collected bytes [security]', () => {
  test('are those of the chunks in their order', () => {
    const collector = createByteCollector({ maxBytes: 100 });
    for (const text of ['He', '', 'llo, ', 'world']) collector.add(Buffer.from(text));
    expect(collector.bytes().toString()).toBe('Hello, world');
  });

  test('end at the limit, while all that came is counted', () => {
    const collector = createByteCollector({ maxBytes: 5 });
    for (const text of ['abc', 'defg', 'hi']) collector.add(Buffer.from(text));
    expect(collector.bytes().toString()).toBe('abcde');
    expect(collector.receivedBytes()).toBe(9);
  });

  test('do not change when the socket reuses its buffer', () => {
    const collector = createByteCollector({ maxBytes: 100 });
    const chunk = Buffer.from('before');
    collector.add(chunk);
    chunk.fill('x');
    expect(collector.bytes().toString()).toBe('before');
  });
});

describe('the memory [security]', () => {
  test('is none before the first byte, whatever length was announced', () => {
    expect(createByteCollector({ maxBytes: 262_144, expectedBytes: 262_144 }).heldBytes()).toBe(0);
  });

  test('is that of the announced length when this is small', () => {
    const collector = createByteCollector({ maxBytes: 262_144, expectedBytes: 1_000 });
    expect(collector.growthFor(10)).toBe(1_000);
    collector.add(Buffer.alloc(10));
    expect([collector.heldBytes(), collector.growthFor(990)]).toEqual([1_000, 0]);
  });

  test('is 16 KiB at first for a large announced length, and ends at that length', () => {
    const collector = createByteCollector({ maxBytes: 262_144, expectedBytes: 200_000 });
    collector.add(ONE);
    expect(collector.heldBytes()).toBe(16_384);
    collector.add(Buffer.alloc(199_999));
    expect(collector.heldBytes()).toBe(200_000);
  });

  test('doubles up to the limit without an announced length', () => {
    const collector = createByteCollector({ maxBytes: 10 });
    const sizes = Array.from({ length: 11 }, () => {
      const growth = collector.growthFor(1);
      const before = collector.heldBytes();
      collector.add(ONE);
      expect(collector.heldBytes()).toBe(before + growth);
      return collector.heldBytes();
    });
    expect(sizes).toEqual([1, 2, 4, 4, 8, 8, 8, 8, 10, 10, 10]);
  });

  test('is at most twice the bytes, not a buffer for each of 100 x 4,096 chunks', () => {
    const collectors = Array.from({ length: 100 }, () => createByteCollector({ maxBytes: 4_096 }));
    const held = (): number => {
      collectGarbage();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = held();
    for (const collector of collectors) addMany(collector, ONE, 4_096);
    // 409,600 bytes; as one buffer for each chunk they were 80 MB.
    expect(held() - before).toBeLessThan(4_000_000);
    expect(collectors.every((each) => each.bytes().length === 4_096)).toBe(true);
  });
});

describe('chunks [security]', () => {
  const isShredded = (bytes: number, times: number): boolean => {
    const collector = createByteCollector({ maxBytes: 64 });
    addMany(collector, Buffer.alloc(bytes), times);
    return collector.isShredded();
  };

  test('of one byte are shredded after 1,365 of them', () => {
    expect([isShredded(1, 1_365), isShredded(1, 1_366)]).toEqual([false, true]);
  });

  test('of four bytes are never shredded, and neither are a thousand empty ones', () => {
    expect([isShredded(4, 100_000), isShredded(0, 1_000)]).toEqual([false, false]);
  });
});
