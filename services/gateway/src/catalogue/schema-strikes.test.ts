import { beforeEach, expect, test } from '@jest/globals';
import { HOUR_MS } from '@posthorn/domain/stats.ts';
import { SchemaStrikes } from './schema-strikes.ts';

let nowMs: number;
let strikes: SchemaStrikes;

beforeEach(() => {
  nowMs = 5;
  strikes = new SchemaStrikes(() => nowMs);
});

test('three within an hour block a schema until it is another one', () => {
  expect([1, 2].map(() => strikes.add('comp_1', 'a'))).toEqual([null, null]);
  expect(strikes.areBlocking('comp_1', 'a')).toBe(false);
  expect(strikes.add('comp_1', 'a')).toBe('schema');
  expect(strikes.areBlocking('comp_1', 'a')).toBe(true);
  expect(strikes.areBlocking('comp_1', 'a, changed')).toBe(false);
  nowMs += 9 * HOUR_MS;
  expect(strikes.areBlocking('comp_1', 'a')).toBe(true);
});

test('three in more than an hour block nothing', () => {
  strikes.add('comp_1', 'a');
  strikes.add('comp_1', 'a');
  nowMs += HOUR_MS;
  expect(strikes.add('comp_1', 'a')).toBeNull();
  expect(strikes.areBlocking('comp_1', 'a')).toBe(false);
});

test('ten within an hour block every schema of the company, until an hour after the last', () => {
  const results = Array.from({ length: 10 }, (_, n) => strikes.add('comp_1', `schema ${n}`));
  expect(results.filter((each) => each !== null)).toEqual(['company']);
  expect(strikes.areBlocking('comp_1', 'never seen')).toBe(true);
  expect(strikes.areBlocking('comp_2', 'never seen')).toBe(false);
  nowMs += HOUR_MS - 1;
  expect(strikes.areBlocking('comp_1', 'never seen')).toBe(true);
  nowMs += 1;
  expect(strikes.areBlocking('comp_1', 'never seen')).toBe(false);
  expect(strikes.add('comp_1', 'later')).toBeNull();
});
