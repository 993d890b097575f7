import { expect, test } from '@jest/globals';
import { describeLimit, judge } from './report.ts';

test('a goal is met at its limit and missed beyond it', () => {
  const latency = { name: 'p99', unit: 'ms', atMost: 50 };
  expect(judge({ ...latency, measured: 50 }).isMet).toBe(true);
  expect(judge({ ...latency, measured: 50.1 }).isMet).toBe(false);
  const rate = { name: 'accepted', unit: '/s', atLeast: 3_000 };
  expect(judge({ ...rate, measured: 3_000 }).isMet).toBe(true);
  expect(judge({ ...rate, measured: 2_999 }).isMet).toBe(false);
});

test('a goal that was not measured is not met', () => {
  expect(judge({ name: 'CPU', unit: 's', atMost: 1, measured: null }).isMet).toBe(false);
});

test('a limit is described with its direction and unit', () => {
  expect(describeLimit({ name: 'p99', unit: 'ms', atMost: 50, measured: 1 })).toBe('≤ 50 ms');
  expect(describeLimit({ name: 'rate', unit: '/s', atLeast: 3, measured: 1 })).toBe('≥ 3 /s');
});
