import { beforeEach, describe, expect, test } from '@jest/globals';
import { READING_TTL_MS } from '@posthorn/platform/redis/reading-positions.ts';
import { createReadingReporter, type ReadingReporter } from './report-reading.ts';

let nowMs: number;
let reports: [number, number][][];
let reporter: ReadingReporter;

beforeEach(() => {
  [nowMs, reports] = [0, []];
  const report = (changed: ReadonlyMap<number, number>) => void reports.push([...changed]);
  reporter = createReadingReporter({ report }, () => nowMs);
});

describe('a dispatcher', () => {
  test('reports the record that it began last in each partition, once', () => {
    reporter.note({ partition: 1, timestampMs: 10 });
    reporter.note({ partition: 2, timestampMs: 11 });
    reporter.note({ partition: 1, timestampMs: 12 });
    reporter.tick();
    reporter.tick();
    expect(reports).toEqual([
      [
        [1, 12],
        [2, 11],
      ],
    ]);
  });

  test('reports before it has begun anything, so that gateways know that it does', () => {
    reporter.tick();
    expect(reports).toEqual([[]]);
  });

  test('reports again before Redis forgets it, and when Redis is back', () => {
    reporter.tick();
    nowMs = READING_TTL_MS / 2;
    reporter.tick();
    reporter.tick();
    expect(reports).toHaveLength(2);
    reporter.repeat();
    reporter.tick();
    expect(reports).toHaveLength(3);
  });
});
