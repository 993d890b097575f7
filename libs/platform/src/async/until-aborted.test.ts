import { getEventListeners, once } from 'node:events';
import { expect, test } from '@jest/globals';
import { abortedAfter, untilAborted } from './until-aborted.ts';

const endless = new Promise<never>(() => undefined);
const reason = new Error('stopping');

test('a step that ends gives its result, and leaves no listener', async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(Promise.resolve(7), signal)).toBe(7);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a step that fails gives its error', async () => {
  const error = new Error('away');
  await expect(untilAborted(Promise.reject(error), new AbortController().signal)).rejects.toBe(
    error,
  );
});

test('a step that does not end gives the reason of the abort', async () => {
  const closing = new AbortController();
  const step = untilAborted(endless, closing.signal);
  closing.abort(reason);
  await expect(step).rejects.toBe(reason);
});

test('a signal that was aborted before gives its reason', async () => {
  await expect(untilAborted(endless, AbortSignal.abort(reason))).rejects.toBe(reason);
  await expect(untilAborted(Promise.resolve(7), AbortSignal.abort(reason))).rejects.toBe(reason);
});

test('a later signal is aborted some time after the first one, and not before it', async () => {
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
