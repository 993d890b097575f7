import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { abortedAfter } from './aborted-after.ts';

test('is aborted some time after the other signal, and not before it', async () => {
  const first = new AbortController();
  const later = abortedAfter(first.signal, 20);
  const aborted = once(later, 'abort');
  first.abort();
  expect(later.aborted).toBe(false);
  // Its timer keeps no process alive, so another one does.
  const alive = setInterval(() => undefined, 1_000);
  await aborted;
  clearInterval(alive);
  expect(later.aborted).toBe(true);
});
