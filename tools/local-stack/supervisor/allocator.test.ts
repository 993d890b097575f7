import { describe, expect, test } from '@jest/globals';
import { allocatorEnv } from './allocator.ts';

describe('the settings of the allocator', () => {
  test('load jemalloc where it is installed', () => {
    expect(allocatorEnv(() => true)).toMatchObject({ LD_PRELOAD: 'libjemalloc.so.2' });
  });

  test('limit the arenas of glibc where jemalloc is not installed', () => {
    expect(allocatorEnv(() => false)).toEqual({ MALLOC_ARENA_MAX: '2' });
  });
});
