import { describe, expect, test } from '@jest/globals';
import { readBacklog, type ReadBacklog, type TopicBacklog } from './topic-backlog.ts';

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;

/** A topic of two partitions. `timesMs`: when each record of a partition was written; `committed` of them are read. */
function topicOf(partitions: { timesMs: number[]; committed: number }[]) {
  const given = {
    questions: 0,
    positions: partitions.map(({ timesMs, committed }, partition) => ({
      topic: 'a',
      partition,
      committed,
      lag: timesMs.length - committed,
      endOffset: timesMs.length,
    })),
    endsBefore(beforeMs: number) {
      given.questions += 1;
      const ends = partitions.map(({ timesMs }, partition): [number, number] => {
        return [partition, timesMs.filter((timeMs) => timeMs < beforeMs).length];
      });
      return Promise.resolve(new Map(ends));
    },
    read: (changed: Partial<ReadBacklog> = {}): Promise<TopicBacklog> =>
      readBacklog({ ...given, readyAfterMs: 0, before: null, nowMs: NOW_MS, ...changed }),
  };
  return given;
}

const ages = (...agesMs: number[]): number[] => agesMs.map((ageMs) => NOW_MS - ageMs);

const ageOf = ({ oldestReadyMs }: TopicBacklog): number => NOW_MS - (oldestReadyMs ?? NaN);

describe('the backlog of a group without members', () => {
  test('is what lies behind its commits, as old as the oldest of it, to 2 %', async () => {
    const topic = topicOf([
      { timesMs: ages(50 * HOUR_MS, 49 * HOUR_MS, 5_000), committed: 2 },
      { timesMs: ages(60 * HOUR_MS, 300_000, 200_000), committed: 1 },
    ]);
    const backlog = await topic.read();
    expect(backlog.records).toBe(3);
    expect(ageOf(backlog) / 300_000).toBeGreaterThan(0.98);
    expect(ageOf(backlog) / 300_000).toBeLessThan(1.03);
  });

  test('is empty when everything is committed', async () => {
    const backlog = await topicOf([{ timesMs: ages(9_000, 8_000), committed: 2 }]).read();
    expect(backlog).toMatchObject({ records: 0, oldestReadyMs: null });
  });

  test('of a delay topic holds only what is due, as old as since then', async () => {
    const timesMs = ages(2 * HOUR_MS, 1.5 * HOUR_MS, 0.5 * HOUR_MS, 1_000);
    const backlog = await topicOf([{ timesMs, committed: 0 }]).read({ readyAfterMs: HOUR_MS });
    expect(backlog.records).toBe(2);
    expect(ageOf(backlog) / HOUR_MS).toBeCloseTo(1, 1);
  });

  test('of a parked hour is empty', async () => {
    const timesMs = ages(3_599_000, 1_000);
    const backlog = await topicOf([{ timesMs, committed: 0 }]).read({ readyAfterMs: HOUR_MS });
    expect(backlog.records).toBe(0);
  });

  test('has the age of the topic while nothing of it is committed', async () => {
    const topic = topicOf([{ timesMs: ages(300_000, 5_000), committed: 0 }]);
    const before = await topic.read();
    const askedFor = topic.questions;
    expect(await topic.read({ before, nowMs: NOW_MS + 60_000 })).toEqual(before);
    expect([askedFor > 0, topic.questions]).toEqual([true, askedFor]);
  });

  test('is younger than a second when it has only just been written', async () => {
    const backlog = await topicOf([{ timesMs: ages(200), committed: 0 }]).read();
    expect(ageOf(backlog)).toBe(1_000);
  });
});
