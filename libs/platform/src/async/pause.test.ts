import { describe, expect, it, test } from '@jest/globals';
import { getEventListeners, once } from 'node:events';
import { abortedAfter, pause, TimeoutError, untilAborted, withTimeout } from './pause.ts';

describe('a pause', () => {
  it('ends after its time', async () => {
    await expect(pause(1, new AbortController().signal)).resolves.toBeUndefined();
  });

  it('ends when its signal is aborted, before or meanwhile', async () => {
    const stopping = new AbortController();
    const paused = pause(600_000, stopping.signal);
    stopping.abort();
    await expect(paused).resolves.toBeUndefined();
    await expect(pause(600_000, stopping.signal)).resolves.toBeUndefined();
  });
});

test('a step that ends in time gives its result', async () => {
  expect(await withTimeout(Promise.resolve(7), 1_000)).toBe(7);
});

test('a step that fails in time gives its error', async () => {
  const error = new Error('away');
  await expect(withTimeout(Promise.reject(error), 1_000)).rejects.toBe(error);
});

test('a step that takes too long ends with TimeoutError', async () => {
  const endless = new Promise(() => undefined);
  await expect(withTimeout(endless, 1)).rejects.toThrow(TimeoutError);
  await expect(withTimeout(endless, 1)).rejects.toThrow('no response within 1 ms');
});

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
