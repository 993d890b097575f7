import { expect, test } from '@jest/globals';
import { createOverloadWatch } from './isolation.ts';

test('a process counts as overloaded while its event loop is busy, and for two seconds after', () => {
  let nowMs = 0;
  const watch = createOverloadWatch(() => nowMs);
  watch.tick(0.89);
  expect(watch.isOverloaded()).toBe(false);
  watch.tick(0.9);
  expect(watch.isOverloaded()).toBe(true);
  nowMs += 1_999;
  watch.tick(0.2);
  expect(watch.isOverloaded()).toBe(true);
  nowMs += 1;
  expect(watch.isOverloaded()).toBe(false);
});
