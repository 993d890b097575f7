import { expect, test } from '@jest/globals';
import { narrate, settlesWithin, until } from './waiting.ts';

test('work that fails in time has settled, work that takes longer has not', async () => {
  expect(await settlesWithin(Promise.reject(new Error('x')), 1_000)).toBe(true);
  expect(await settlesWithin(new Promise(() => undefined), 10)).toBe(false);
});

test('only work that takes longer than a second says what it is', async () => {
  const said: string[] = [];
  await narrate((line) => said.push(line), 'quick', Promise.resolve());
  let finish: () => void = () => undefined;
  const work = new Promise<void>((resolve) => (finish = resolve));
  const sayAndFinish = (line: string): void => {
    said.push(line);
    finish();
  };
  await narrate(sayAndFinish, 'slow', work);
  expect(said).toEqual(['slow']);
});

test('a wait that is in vain says for what and how long', async () => {
  const wait = until({ what: 'An answer', timeoutMs: 20 }, () => Promise.resolve(false));
  await expect(wait).rejects.toThrow('An answer did not happen within 0.02 s.');
});
