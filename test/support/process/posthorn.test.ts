import { expect, test } from '@jest/globals';
import { startAll } from './posthorn.ts';

test('stops the started services when another one cannot start', async () => {
  const stopped: string[] = [];
  const start = (name: string) =>
    Promise.resolve({
      stop() {
        stopped.push(name);
        return Promise.resolve();
      },
    });
  const failing = Promise.reject(new Error('no port'));
  await expect(startAll([start('a'), failing, start('b')])).rejects.toThrow('no port');
  expect(stopped).toEqual(['a', 'b']);
});
