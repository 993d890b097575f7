import { describe, expect, test } from '@jest/globals';
import { defaultMemoryMib, memoryShare } from './memory-shares.ts';

const MIB = 1_048_576;

describe('the share of a part in MEMORY_MIB', () => {
  test('is what the part needs while MEMORY_MIB has its default', () => {
    const shares = [
      memoryShare('gateway', 'accept_queue', defaultMemoryMib('gateway')),
      memoryShare('gateway', 'api_key_cache', defaultMemoryMib('gateway')),
      memoryShare('dispatcher', 'webhook_cache', defaultMemoryMib('dispatcher')),
      memoryShare('retry', 'records', defaultMemoryMib('retry')),
    ];
    expect(shares).toEqual([64 * MIB, 24 * MIB, 48 * MIB, 32 * MIB]);
  });

  test('grows and shrinks with MEMORY_MIB', () => {
    expect(memoryShare('gateway', 'requests', 2 * defaultMemoryMib('gateway'))).toBe(128 * MIB);
    expect(memoryShare('dispatcher', 'payloads', defaultMemoryMib('dispatcher') / 4)).toBe(
      16 * MIB,
    );
  });
});
