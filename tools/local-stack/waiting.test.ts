import { expect, test } from '@jest/globals';
import { logIfSlow, settlesWithin, waitUntil } from './waiting.ts';

test('settlesWithin returns true for work that fails in time, and false for work that takes longer', async () => {
  expect(await settlesWithin(Promise.reject(new Error('x')), 1_000)).toBe(true);
  expect(await settlesWithin(new Promise(() => undefined), 10)).toBe(false);
});

test('logIfSlow logs only when the work takes longer than a second', async () => {
  const logged: string[] = [];
  await logIfSlow((line) => logged.push(line), 'quick', Promise.resolve());
  let finish: () => void = () => undefined;
  const work = new Promise<void>((resolve) => (finish = resolve));
  const logAndFinish = (line: string): void => {
    logged.push(line);
    finish();
  };
  await logIfSlow(logAndFinish, 'slow', work);
  expect(logged).toEqual(['slow']);
});

test('waitUntil throws after its timeout, and names the awaited condition', async () => {
  const wait = waitUntil({ what: 'a reply', timeoutMs: 20 }, () => Promise.resolve(false));
  await expect(wait).rejects.toThrow('Timed out after 0.02 s waiting for a reply.');
});
