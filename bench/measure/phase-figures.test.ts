import { describe, expect, test } from '@jest/globals';
import { createArrivals } from '../load/arrivals.ts';
import { phaseFigures } from './phase-figures.ts';

const HANGING = 1;

function sentTo(endpoint: number, id: string, intendedAtMs: number) {
  return { id, endpoint, intendedAtMs, sentAtMs: intendedAtMs + 1, acceptedAtMs: intendedAtMs + 5 };
}

function figuresOf(arrivedAt: Record<string, number[]>) {
  let nowMs = 0;
  const arrivals = createArrivals(() => nowMs);
  for (const [id, times] of Object.entries(arrivedAt))
    for (const timeMs of times) {
      nowMs = timeMs;
      arrivals.note(id, 0);
    }
  const sent = [sentTo(0, 'a', 0), sentTo(0, 'b', 500), sentTo(HANGING, 'c', 600)];
  const record = { startedAtMs: 0, endedAtMs: 1_000, sent, refused: { '503': 2 } };
  return phaseFigures(record, arrivals, (endpoint) => endpoint !== HANGING);
}

describe('the figures of a phase', () => {
  test('count latencies from the intended send time', () => {
    const { acceptMs, endToEndMs, generatorLateMs } = figuresOf({ a: [10], b: [540] });
    expect(acceptMs).toMatchObject({ count: 2, max: 5 });
    expect(endToEndMs).toMatchObject({ count: 2, p50: 10, max: 40 });
    expect(generatorLateMs.max).toBe(1);
  });

  test('name what is missing, what came twice and what was refused', () => {
    const figures = figuresOf({ a: [10, 20, 30] });
    expect(figures).toMatchObject({ accepted: 2, missing: 1, duplicates: 2 });
    expect(figures.refused).toEqual({ '503': 2 });
  });

  test('do not count as delivered per second what arrived after the end', () => {
    const figures = figuresOf({ a: [10], b: [1_500] });
    expect(figures).toMatchObject({ acceptedPerSecond: 3, deliveredPerSecond: 1, missing: 0 });
  });

  test('keep messages to endpoints that do not answer aside', () => {
    expect(figuresOf({ a: [10], b: [540] }).aside).toEqual({ accepted: 1, attempted: 0 });
  });
});
