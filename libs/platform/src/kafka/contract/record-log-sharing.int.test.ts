import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { ConsumeOptions, Consumption, LogRecord, RecordLog } from '../record-log.ts';

const KEYS = Array.from({ length: 60 }, (_, n) => `k${n}`);

describe('the partitions of two processes', () => {
  let scratch: ScratchLog;
  let processes: RecordLog[];

  beforeAll(async () => {
    scratch = await openScratchLog();
    processes = [scratch.records, await scratch.openAnother()];
  });

  afterAll(() => Promise.all(processes.map((records) => records.close())));

  /** Each process becomes a member of one group; `handle` learns which of them has read a record. */
  function joinAll(
    topics: string[],
    handle: (by: number, record: LogRecord) => void,
    more: (by: number) => Partial<ConsumeOptions>,
  ): Promise<Consumption[]> {
    const join = (records: RecordLog, by: number): Promise<Consumption> =>
      records.consume({
        groupId: `${topics.join('-')}-group`,
        topics,
        inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
        handle(record) {
          handle(by, record);
          return Promise.resolve();
        },
        ...more(by),
      });
    return Promise.all(processes.map(join));
  }

  const publishAll = (topics: string[]): Promise<void> =>
    scratch.records.publish(
      KEYS.flatMap((key) => topics.map((topic) => ({ topic, key, value: Buffer.alloc(0) }))),
    );

  it('are the same of every topic, so that one process reads all records of a key', async () => {
    const topics = [await scratch.newTopic('fresh'), await scratch.newTopic('retries')];
    const seen: { by: number; record: LogRecord }[] = [];
    const owned = [0, 0];
    const members = await joinAll(
      topics,
      (by, record) => void seen.push({ by, record }),
      (by) => ({
        onAssigned(assignment) {
          owned[by] = Object.values(assignment).flat().length;
        },
      }),
    );
    // 3 partitions of each topic: one process has one of them, the other two.
    await eventually('both know their share', () => [...owned].sort().join() === '2,4');
    await publishAll(topics);
    await eventually('all records', () => seen.length === topics.length * KEYS.length);
    for (const key of KEYS) {
      const ofKey = seen.filter(({ record }) => record.key === key);
      expect(new Set(ofKey.map(({ record }) => record.partition)).size).toBe(1);
      expect(new Set(ofKey.map(({ by }) => by)).size).toBe(1);
    }
    expect(new Set(seen.map(({ by }) => by)).size).toBe(2);
    await Promise.all(members.map((member) => member.stop(5_000)));
  });

  it('are shared evenly where topics need not stay together', async () => {
    const names = ['first', 'second', 'third'];
    const topics = await Promise.all(names.map((name) => scratch.newTopic(name)));
    const owners = new Map<string, number>();
    const members = await joinAll(
      topics,
      (by, { topic, partition }) => void owners.set(`${topic}/${partition}`, by),
      () => ({ sharing: { kind: 'evenly', after: 0 } }),
    );
    const counts = (): number[] =>
      processes.map((_, by) => [...owners.values()].filter((owner) => owner === by).length).sort();
    // 9 partitions. Together, one member would have two of each topic.
    await eventually('4 and 5 partitions', async () => {
      await publishAll(topics);
      return counts().join() === '4,5';
    });
    await Promise.all(members.map((member) => member.stop(5_000)));
  });
});
