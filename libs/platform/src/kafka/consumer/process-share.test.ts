import { beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '../../service/logger.ts';
import { TOGETHER, type Sharing } from '../record-log.ts';
import { decodeReport } from './partition-assignment.ts';
import { createProcessShare, createStrayWatch, type ProcessShare } from './process-share.ts';

const FOLLOWING: Sharing = { kind: 'following' };
const EVENLY: Sharing = { kind: 'evenly', after: 0 };

let share: ProcessShare;

beforeEach(() => {
  share = createProcessShare('p');
});

const heldIn = (sharing: Sharing): unknown => decodeReport(share.reportFor(sharing)).held;

describe('a process', () => {
  test('reports in both groups what it has in the one that shares together, in that order', () => {
    expect([heldIn(TOGETHER), heldIn(FOLLOWING)]).toEqual([[], []]);
    share.joined(TOGETHER, { fresh: [5, 7], retries: [5, 7] });
    share.joined(TOGETHER, { fresh: [2, 7], retries: [2, 7] });
    share.joined(FOLLOWING, { slow: [5] });
    expect([heldIn(TOGETHER), heldIn(FOLLOWING)]).toEqual([
      [7, 2],
      [7, 2],
    ]);
  });

  test('reports nothing where partitions are shared evenly', () => {
    share.joined(TOGETHER, { fresh: [1] });
    expect(heldIn(EVENLY)).toBeUndefined();
  });
});

describe('a member that is to follow another group', () => {
  let assigned: number[];
  let isRunning: boolean;
  let replaced: number;

  const watch = () =>
    createStrayWatch({
      share,
      consumer: () => ({
        isRunning: () => isRunning,
        assigned: () => assigned.map((partition) => ({ topic: 'slow', partition })),
      }),
      replaceConsumer: () => Promise.resolve(void (replaced += 1)),
      logger: createLogger('test', 'silent'),
    });

  beforeEach(() => {
    [assigned, isRunning, replaced] = [[1, 3], true, 0];
  });

  test('joins anew when its partitions still differ at the second look', async () => {
    const { tick } = watch();
    share.joined(TOGETHER, { fresh: [1, 2] });
    await tick();
    expect(replaced).toBe(0);
    await tick();
    expect(replaced).toBe(1);
  });

  test('stays while its partitions are those of the process, or become so', async () => {
    const { tick } = watch();
    await tick();
    share.joined(TOGETHER, { fresh: [1, 2] });
    await tick();
    share.joined(TOGETHER, { fresh: [3, 1] });
    await tick();
    await tick();
    expect(replaced).toBe(0);
  });

  test('stays while it is no member', async () => {
    const { tick } = watch();
    share.joined(TOGETHER, { fresh: [1, 2] });
    isRunning = false;
    await tick();
    await tick();
    expect(replaced).toBe(0);
  });
});
