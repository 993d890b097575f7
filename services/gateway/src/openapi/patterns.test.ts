import { expect, test } from '@jest/globals';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { createDocument } from './document.ts';

/** RE2, the engine of Go and of many other clients, compiles no pattern that repeats something more often. */
const MAX_REPEATS = 1_000;

const ESCAPE = String.raw`\\(?:[dDwWsS]|x[0-9a-fA-F]{2}|[^A-Za-z0-9])`;
const TOKEN = new RegExp(
  [
    String.raw`(?<open>\((?!\?)|\(\?:)`,
    String.raw`(?<close>\))`,
    // Not `[^]`, which only JavaScript has, and no class in a class.
    String.raw`(?<atom>${ESCAPE}|\[(?!\^?\])\^?(?:${ESCAPE}|[^\][\\])+\]|[^\\^$.|?*+()[\]{}]|[.^$|])`,
    String.raw`(?<repeat>(?:[*+?]|\{(?<least>\d+)(?:,(?<most>\d*))?\})\??)`,
  ].join('|'),
  'y',
);

/**
 * Returns how often the pattern repeats something, nested repeats multiplied. Throws for what not every engine has, such
 * as look-around, references and \u (JSON Schema 2020-12, section 6.4).
 */
function repeatsOf(pattern: string): number {
  const groups = [1];
  let last = 1;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < pattern.length) {
    const at = TOKEN.lastIndex;
    const { groups: token } = TOKEN.exec(pattern) ?? {};
    if (!token) throw new Error(`${pattern} cannot be read from character ${at} on`);
    if (token.close) last = groups.pop() ?? 1;
    else if (!token.repeat) last = 1;
    if (token.repeat) last *= Math.max(1, Number(token.least ?? 1), Number(token.most ?? 1));
    if (token.open) groups.push(1);
    else groups.push(Math.max(groups.pop() ?? 1, last));
  }
  return Math.max(...groups);
}

function patternsIn(node: unknown): string[] {
  if (node === null || typeof node !== 'object') return [];
  const own = 'pattern' in node && typeof node.pattern === 'string' ? [node.pattern] : [];
  return [...own, ...Object.values(node).flatMap(patternsIn)];
}

const patterns = new Set(patternsIn(createDocument(routeTable())));

test('the document has patterns', () => {
  expect(patterns.size).toBeGreaterThan(20);
});

test.each([...patterns])('clients in any language can compile %s', (pattern) => {
  expect(repeatsOf(pattern)).toBeLessThanOrEqual(MAX_REPEATS);
});

test.each([
  ['^[a-z]{1,100}$', 100],
  ['(/[a-z]{1,100}){0,15}', 1_500],
  ['(a{2}|(b{3}c?){4}){5,}', 60],
  ['[{]{7}', 7],
  ['a{5}(b){3}', 5],
])('%s repeats something %i times', (pattern, times) => {
  expect(repeatsOf(pattern)).toBe(times);
});

test.each([
  '(?=a)b',
  '(?!a)b',
  '(?<=a)b',
  String.raw`(a)\1`,
  String.raw`\u0041`,
  '[^]',
  '[]',
  '[[a]]',
])('%s is no pattern of every engine', (pattern) => {
  expect(() => repeatsOf(pattern)).toThrow();
});
