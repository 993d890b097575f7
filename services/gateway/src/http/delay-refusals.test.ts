import { expect, test } from '@jest/globals';
import { createDelayRefusal } from './delay-refusals.ts';

function setUp() {
  const timers: { ms: number; run: () => void }[] = [];
  const sent: string[] = [];
  const delayRefusal = createDelayRefusal((ms, run) => void timers.push({ ms, run }));
  const refuse = (name: string): void => {
    delayRefusal(() => void sent.push(name));
  };
  return { timers, sent, refuse };
}

test('a refusal is sent a quarter of a second later', () => {
  const { timers, sent, refuse } = setUp();
  refuse('first');
  expect([sent, timers.map(({ ms }) => ms)]).toEqual([[], [250]]);
  timers[0]?.run();
  expect(sent).toEqual(['first']);
});

test('no more than 2,000 refusals are delayed: the next one is sent at once', () => {
  const { timers, sent, refuse } = setUp();
  for (let n = 0; n < 2_000; n += 1) refuse(`delayed ${n}`);
  refuse('at once');
  expect(sent).toEqual(['at once']);
  timers[0]?.run();
  refuse('delayed again');
  expect(sent).toEqual(['at once', 'delayed 0']);
});
