import { expect, test } from '@jest/globals';
import { createClosingCache } from './closing-cache.ts';

test('a closing cache closes what was used least recently when too many are open', () => {
  const closed: string[] = [];
  const cache = createClosingCache<{ name: string }>(2, ({ name }) => closed.push(name));
  const use = (name: string) => cache.get(name, () => ({ name }));
  const first = use('a');
  use('b');
  expect(use('a')).toBe(first);
  use('c');
  expect(closed).toEqual(['b']);
});
