import { describe, expect, test } from '@jest/globals';
import type { RetryReason } from '@posthorn/domain/ingest-lag.ts';
import { createKeepTrying, StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { GiveBackError } from '@posthorn/platform/kafka/record-log.ts';
import { sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { ApiError, unavailable } from '../api-error.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { type LaneDeps, PartitionLane, type RecordOutcome } from './partition-lane.ts';
import type { IngestedMessage } from './read-record.ts';

const SOURCE = { topic: 'orders', companyId: 'comp_1', name: 'orders' };
const NEW: RecordOutcome = { kind: 'accepted', isNew: true };
const WAITS: RecordOutcome = {
  kind: 'waits',
  why: 'store_unavailable',
  error: unavailable('mongodb_unavailable'),
};

/** A record whose value is its number; `bad` ones can never be accepted. */
const record = (n: number, isInherited = false) =>
  sampleRecord({}, { topic: 'orders', offset: n, value: Buffer.from(String(n)), isInherited });

interface Harness {
  lane: PartitionLane;
  /** The offsets of each call of `accept`. */
  calls: number[][];
  /** What happened, in order. */
  log: string[];
  stopping: AbortController;
}

function laneWith(
  changed: Partial<LaneDeps> & { outcomes?: (offsets: number[]) => RecordOutcome[] } = {},
): Harness {
  const { outcomes = (offsets: number[]) => offsets.map(() => NEW), ...deps } = changed;
  const calls: number[][] = [];
  const log: string[] = [];
  const stopping = new AbortController();
  const lane = new PartitionLane(SOURCE, {
    read: (each) =>
      each.key === 'bad'
        ? { kind: 'refused', record: each, error: new ApiError('invalid_json') }
        : {
            kind: 'message',
            record: each,
            message: { place: String(each.offset) } as IngestedMessage,
          },
    nextSlice: (_companyId, bytes) => {
      log.push(`turn ${bytes}`);
      return Promise.resolve();
    },
    takePermits: (_companyId, count) => ({ granted: count, waitMs: 0 }),
    freeClaims: (_companyId, messages) => {
      log.push(`free ${messages.map(({ place }) => place).join()}`);
      return Promise.resolve();
    },
    accept: (_source, messages) => {
      const offsets = messages.map(({ place }) => Number(place));
      calls.push(offsets);
      log.push(`accept ${offsets.join()}`);
      return Promise.resolve(outcomes(offsets));
    },
    reject: (_source, refused) => {
      log.push(`reject ${refused.map((each) => each.record.offset).join()}`);
      return Promise.resolve();
    },
    whyWaits: () => Promise.resolve(null),
    isSteady: () => true,
    keepTrying: createKeepTrying({
      logger: { warn: () => undefined },
      signal: stopping.signal,
      firstWaitMs: 1,
    }),
    stopping: stopping.signal,
    onWait: () => undefined,
    ...deps,
  });
  return { lane, calls, log, stopping };
}

const ours = () => true;

describe('a lane', () => {
  test('accepts records that come together in one call, and those that come meanwhile in the next', async () => {
    const { lane, calls } = laneWith();
    const first = [0, 1, 2].map((n) => lane.add(record(n), ours));
    await Promise.all(first);
    await lane.add(record(3), ours);
    expect(calls).toEqual([[0, 1, 2], [3]]);
  });

  test('accepts at most 200 at once, in order', async () => {
    const { lane, calls } = laneWith();
    await Promise.all(Array.from({ length: 450 }, (_, n) => lane.add(record(n), ours)));
    expect(calls.map((each) => each.length)).toEqual([200, 200, 50]);
    expect(calls.flat()).toEqual(Array.from({ length: 450 }, (_, n) => n));
  });

  test('tries what waits again before anything behind it, and skips nothing', async () => {
    let isUp = false;
    const { lane, calls } = laneWith({
      outcomes: (offsets) => {
        const found = offsets.map((n) => (n < 1 || isUp ? NEW : WAITS));
        isUp = true;
        return found;
      },
    });
    await Promise.all([0, 1, 2].map((n) => lane.add(record(n), ours)));
    expect(calls).toEqual([
      [0, 1, 2],
      [1, 2],
    ]);
  });

  test('frees the claims of a former owner before it accepts, and those of its own earlier try', async () => {
    let tries = 0;
    const { lane, log } = laneWith({
      outcomes: (offsets) => offsets.map(() => ((tries += 1) === 2 ? WAITS : NEW)),
    });
    await lane.add(record(0, true), ours);
    await lane.add(record(1), ours);
    expect(log).toEqual(['free 0', 'accept 0', 'accept 1', 'free 1', 'accept 1']);
  });

  test('finishes a rejected record only when Kafka has it', async () => {
    let failures = 2;
    const { lane, log } = laneWith({
      reject: () => {
        log.push('reject');
        failures -= 1;
        return failures >= 0 ? Promise.reject(new Error('Kafka is away')) : Promise.resolve();
      },
    });
    await lane.add({ ...record(0), key: 'bad' }, ours).then(() => log.push('finished'));
    expect(log).toEqual(['reject', 'reject', 'reject', 'finished']);
  });

  test('accepts no more than the company may send now', async () => {
    const granted = [2, 0, 3];
    const { lane, calls } = laneWith({
      takePermits: () => ({ granted: granted.shift() ?? 0, waitMs: 1 }),
    });
    await Promise.all([0, 1, 2, 3, 4].map((n) => lane.add(record(n), ours)));
    expect(calls).toEqual([
      [0, 1],
      [2, 3, 4],
    ]);
  });

  test('keeps the permits of records that the store did not take', async () => {
    const asked: number[] = [];
    let isUp = false;
    const { lane } = laneWith({
      takePermits: (_companyId, count) => {
        asked.push(count);
        return { granted: count, waitMs: 0 };
      },
      outcomes: (offsets) => offsets.map(() => (isUp ? NEW : ((isUp = true), WAITS))),
    });
    await lane.add(record(0), ours);
    expect(asked).toEqual([1, 0]);
  });

  test('waits while the source must wait, and is no stalled partition meanwhile', async () => {
    let why: RetryReason | null = 'company_suspended';
    const { lane, calls } = laneWith({ whyWaits: () => Promise.resolve(why) });
    const done = lane.add(record(0), ours);
    await eventually('it waits', () => lane.isWaiting());
    expect(calls).toEqual([]);
    why = null;
    await done;
    expect(calls).toEqual([[0]]);
    expect(lane.isWaiting()).toBe(false);
  });

  test('begins nothing while its group changes, and leaves what belongs to another member then', async () => {
    let isSteady = false;
    let isOurs = true;
    const { lane, calls } = laneWith({ isSteady: () => isSteady });
    const kept = lane.add(record(0), ours);
    const gone = lane.add(record(1), () => isOurs);
    isSteady = true;
    await Promise.all([kept, gone]);
    isOurs = false;
    await lane.add(record(2), () => isOurs);
    expect(calls).toEqual([[0, 1]]);
  });

  test('accepts the records of a partition that went and came back while those from before still wait', async () => {
    const first = Promise.withResolvers<null>();
    const { lane, calls } = laneWith({ whyWaits: () => first.promise });
    let isOurs = true;
    const before = [0, 1].map((n) => lane.add(record(n), () => isOurs));
    await new Promise(setImmediate);
    before.push(lane.add(record(2), () => isOurs));
    isOurs = false;
    const again = [0, 1, 2, 3].map((n) => lane.add(record(n, true), ours));
    first.resolve(null);
    await Promise.all([...before, ...again]);
    expect(calls.at(-1)).toEqual([0, 1, 2, 3]);
  });

  test('begins nothing when its group has changed while MongoDB was asked whether the source must wait', async () => {
    let isOurs = true;
    let isSteady = true;
    const { lane, calls } = laneWith({
      isSteady: () => isSteady,
      whyWaits: () => {
        isSteady = false;
        return Promise.resolve(null);
      },
    });
    const done = lane.add(record(0), () => isOurs);
    await eventually('it waits', () => lane.isWaiting());
    isOurs = false;
    await done;
    expect(calls).toEqual([]);
  });

  test('leaves its records to the next owner when it stops', async () => {
    const { lane, stopping } = laneWith({ outcomes: (offsets) => offsets.map(() => WAITS) });
    const waiting = lane.add(record(0), ours);
    await eventually('it waits', () => lane.isWaiting());
    stopping.abort();
    await expect(waiting).rejects.toThrow(StoppedError);
  });

  test('rejects the one record of a batch that the program has a fault for, and accepts the others in order', async () => {
    const { lane, log } = laneWith({
      outcomes: (offsets) => {
        if (offsets.includes(1)) throw new TypeError('a bug');
        return offsets.map(() => NEW);
      },
    });
    await Promise.all([0, 1, 2].map((n) => lane.add(record(n), ours)));
    await Promise.all([3, 4].map((n) => lane.add(record(n), ours)));
    expect(log.filter((line) => !line.startsWith('free'))).toEqual([
      ...['accept 0,1,2', 'accept 0', 'accept 1', 'reject 1', 'accept 2', 'accept 3,4'],
    ]);
  });

  test('fails the records of a batch for a fault that is about none of them, and goes on with the next', async () => {
    let isFaulty = true;
    let checks = 0;
    const { lane } = laneWith({
      whyWaits: () => {
        checks += 1;
        if (checks > 1 && isFaulty) throw new TypeError('a bug');
        return Promise.resolve(isFaulty ? 'company_suspended' : null);
      },
    });
    await expect(lane.add(record(0), ours)).rejects.toThrow('a bug');
    expect(lane.isWaiting()).toBe(false);
    isFaulty = false;
    await lane.add(record(1), ours);
  });
});

test('Records are read 64 KiB at a time, in turns with other companies', async () => {
  const { lane, log } = laneWith();
  const large = (n: number) =>
    sampleRecord({}, { topic: 'orders', offset: n, value: Buffer.alloc(40_000, '1') });
  await Promise.all([0, 1, 2, 3, 4].map((n) => lane.add(large(n), () => true)));
  expect(log).toEqual(['turn 80000', 'turn 80000', 'accept 0,1,2,3,4']);
});

describe('a lane of a company that may send nothing', () => {
  /** Each record is given back. */
  const expectGivenBack = async (added: Promise<void>[]): Promise<void> => {
    const results = await Promise.allSettled(added);
    const reasons = results.map((each): unknown => 'reason' in each && each.reason);
    expect(reasons).toEqual(added.map(() => expect.any(GiveBackError)));
  };

  test('gives all its records back after some tries, and the next ones after one, until it may send again', async () => {
    let why: RetryReason | null = 'company_suspended';
    let asked = 0;
    const { lane, calls } = laneWith({
      whyWaits: () => {
        asked += 1;
        return Promise.resolve(why);
      },
    });
    // More than it accepts at once.
    await expectGivenBack(Array.from({ length: 250 }, (_, n) => lane.add(record(n), ours)));
    expect([asked > 1, lane.isIdle(), calls]).toEqual([true, true, []]);
    expect(lane.retried()).toBe('company_suspended');
    asked = 0;
    const again = lane.add(record(0), ours);
    await expectGivenBack([again]);
    expect(asked).toBe(1);
    const { readAgain } = (await again.catch(
      (error: unknown) => error as GiveBackError,
    )) as GiveBackError;
    expect(await readAgain.mayReadOn()).toBe(false);
    why = null;
    expect(await readAgain.mayReadOn()).toBe(true);
    await lane.add(record(0), ours);
    expect([calls, lane.retried()]).toEqual([[[0]], null]);
  });
});

describe('a lane knows why its records were tried again', () => {
  const RATE_LIMITED = { takePermits: () => ({ granted: 0, waitMs: 60_000 }) };
  const NOT_STORED = { outcomes: (offsets: number[]) => offsets.map(() => WAITS) };
  const AWAY = { freeClaims: () => Promise.reject(new Error('MongoDB is away')) };

  test.each([
    ['rate_limited', RATE_LIMITED],
    ['store_unavailable', NOT_STORED],
    ['store_unavailable', AWAY],
  ] as const)('%s', async (reason, changed) => {
    const { lane, stopping } = laneWith(changed);
    const added = lane.add(record(0, true), ours);
    await eventually('a try in vain', () => lane.retried() !== null);
    expect([lane.retried(), lane.finished()]).toEqual([reason, 0]);
    stopping.abort();
    await expect(added).rejects.toThrow(StoppedError);
  });

  test('not once they are accepted or rejected, which it counts', async () => {
    let tries = 0;
    const { lane } = laneWith({
      outcomes: (offsets) => offsets.map(() => ((tries += 1) > 1 ? NEW : WAITS)),
    });
    await Promise.all([lane.add(record(0), ours), lane.add({ ...record(1), key: 'bad' }, ours)]);
    await eventually('it has ended', () => lane.isIdle());
    expect([lane.retried(), lane.finished()]).toEqual([null, 2]);
  });
});
