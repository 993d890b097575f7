import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { Consumption, RecordLog, Sharing } from '../record-log.ts';

const PARTITIONS = 12;

interface Process {
  records: RecordLog;
  /** Its partitions in the group that shares them together, and in the one that follows. */
  own: { together: readonly number[]; following: readonly number[] };
  members: Consumption[];
}

describe('partitions of processes', () => {
  let scratch: ScratchLog;
  let topics: { together: string; following: string };
  const processes: Process[] = [];

  beforeAll(async () => {
    scratch = await openScratchLog();
    topics = {
      together: await scratch.newTopic('fresh', PARTITIONS),
      following: await scratch.newTopic('slow', PARTITIONS),
    };
  });

  afterAll(async () => {
    await Promise.all(processes.map((each) => leave(each)));
    await scratch.records.close();
  });

  async function start(): Promise<Process> {
    const records = await scratch.openAnother();
    const started: Process = { records, own: { together: [], following: [] }, members: [] };
    const join = (kind: 'together' | 'following'): Promise<Consumption> => {
      const topic = topics[kind];
      const sharing: Sharing = { kind };
      return records.consume({
        groupId: `${topic}-group`,
        topics: [topic],
        sharing,
        inFlightLimits: { pauseAt: 10, resumeAt: 5 },
        handle: () => Promise.resolve(),
        onAssigned: (assignment) =>
          (started.own[kind] = [...(assignment[topic] ?? [])].sort(byNumber)),
      });
    };
    processes.push(started);
    started.members = await Promise.all([join('together'), join('following')]);
    return started;
  }

  async function leave({ members, records }: Process): Promise<void> {
    await Promise.all(members.map((each) => each.stop(5_000)));
    await records.close();
  }

  const byNumber = (a: number, b: number): number => a - b;
  const areSharedOut = (): boolean =>
    (['together', 'following'] as const).every((kind) => {
      const all = processes.flatMap(({ own }) => own[kind]).sort(byNumber);
      const sizes = processes.map(({ own }) => own[kind].length);
      const isEven = Math.max(...sizes) - Math.min(...sizes) <= 1;
      return isEven && all.join() === [...Array(PARTITIONS).keys()].join();
    });
  const expectBothAlike = (): void => {
    for (const { own } of processes) expect(own.following).toEqual(own.together);
  };

  it('stay where they are when another process leaves or joins, the same in both groups', async () => {
    for (let n = 0; n < 3; n += 1) {
      await start();
      await eventually(`${n + 1} share them`, areSharedOut, 30_000);
      expectBothAlike();
    }
    const [leaving] = processes.splice(1, 1);
    const before = processes.map(({ own }) => own.together);
    if (leaving) await leave(leaving);
    await eventually('two share them', areSharedOut, 30_000);
    expectBothAlike();
    processes.forEach(({ own }, n) => {
      expect(own.together).toEqual(expect.arrayContaining([...(before[n] ?? [])]));
    });
    const restarted = await start();
    await eventually('three share them again', areSharedOut, 30_000);
    expectBothAlike();
    expect(restarted.own.together).toEqual(leaving?.own.together);
    expect(processes.slice(0, 2).map(({ own }) => own.together)).toEqual(before);
  });
});
