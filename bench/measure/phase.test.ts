import { describe, expect, test } from '@jest/globals';
import { createArrivals } from '../load/arrivals.ts';
import { phaseFigures } from './phase.ts';

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

  test('count missing, duplicate and refused messages', () => {
    const figures = figuresOf({ a: [10, 20, 30] });
    expect(figures).toMatchObject({ accepted: 2, missing: 1, duplicates: 2 });
    expect(figures.refused).toEqual({ '503': 2 });
  });

  test('do not count arrivals after the end as delivered per second', () => {
    const figures = figuresOf({ a: [10], b: [1_500] });
    expect(figures).toMatchObject({ acceptedPerSecond: 3, deliveredPerSecond: 1, missing: 0 });
  });

  test('count messages to endpoints that do not respond separately', () => {
    expect(figuresOf({ a: [10], b: [540] }).toFailing).toEqual({ accepted: 1, attempted: 0 });
  });
});
