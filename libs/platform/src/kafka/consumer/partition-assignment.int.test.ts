import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import type { Consumption, RecordLog } from '../record-log.ts';

describe('A topic that only a newer member of the group reads', () => {
  let scratch: ScratchLog;
  let newer: RecordLog;

  beforeAll(async () => {
    scratch = await openScratchLog();
    newer = await scratch.openAnother();
  });

  afterAll(async () => {
    await Promise.all([scratch.records.close(), newer.close()]);
  });

  it('is read by it, although the leader of the group does not know the topic', async () => {
    const [common, added] = [await scratch.newTopic('common'), await scratch.newTopic('added')];
    const partitions = new Set<number>();
    const join = (log: RecordLog, topics: string[]): Promise<Consumption> =>
      log.consume({
        groupId: `${common}-group`,
        topics,
        inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
        handle: ({ topic, partition }) => {
          if (topic === added) partitions.add(partition);
          return Promise.resolve();
        },
      });
    // The first member of a group leads it for as long as it stays.
    const members = [await join(scratch.records, [common])];
    members.push(await join(newer, [common, added]));
    const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
    await newer.publish(keys.map((key) => ({ topic: added, key, value: Buffer.alloc(0) })));
    await eventually('records of all partitions', () => partitions.size === 3);
    expect(members.every((each) => each.isRunning())).toBe(true);
    await Promise.all(members.map((each) => each.stop(5_000)));
  });
});
