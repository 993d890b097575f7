import { beforeEach, describe, expect, test } from '@jest/globals';
import { REPEAT_REPORT_MS } from '@posthorn/platform/redis/reading-positions.ts';
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

  test('reports the latest record, so that those of a gateway whose clock is ahead count as read', () => {
    for (const timestampMs of [10, 5_000, 11]) reporter.note({ partition: 1, timestampMs });
    reporter.tick();
    reporter.note({ partition: 1, timestampMs: 12 });
    reporter.tick();
    expect(reports).toEqual([[[1, 5_000]], [[1, 5_000]]]);
    reporter.forget();
    reporter.note({ partition: 1, timestampMs: 13 });
    reporter.tick();
    expect(reports[2]).toEqual([[1, 13]]);
  });

  test('repeats the position of each of its partitions, so that gateways know that it is alive', () => {
    reporter.note({ partition: 1, timestampMs: 10 });
    reporter.tick();
    reporter.note({ partition: 2, timestampMs: 11 });
    nowMs = REPEAT_REPORT_MS;
    reporter.tick();
    reporter.tick();
    expect(reports).toEqual([
      [[1, 10]],
      [
        [1, 10],
        [2, 11],
      ],
    ]);
  });

  test('reports nothing of partitions that were assigned anew until it begins a record of them', () => {
    reporter.note({ partition: 1, timestampMs: 10 });
    reporter.forget();
    nowMs = REPEAT_REPORT_MS;
    reporter.tick();
    expect(reports).toEqual([]);
  });
});
