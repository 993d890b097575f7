import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { interruptAt, type Moment } from '../../../../test/support/process/interrupt-at.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import { createPageBudget } from './pages/resend-page-budget.ts';
import { createResendRunner, type ResendRunner, type RunResendsDeps } from './run-resends.ts';

const IDS = ['dlv_1', 'dlv_2', 'dlv_3', 'dlv_4', 'dlv_5'];
const LEASE = 'resend/rsnd_1';

let world: MemoryResends;
let leases: MemoryLeases;
let sends: string[][];
let nowMs: number;
/** Which of the published attempts have a result. */
let isMade: (deliveryId: string) => boolean;

beforeEach(async () => {
  await storeFailed();
  isMade = () => true;
});

async function storeFailed(): Promise<void> {
  [world, leases, sends, nowMs] = [createMemoryResends(), createMemoryLeases(), [], 0];
  for (const id of IDS) world.add(id, 'exhausted');
  await world.resends.insert(sampleResend('rsnd_1'));
}

const records = {
  publish(records: readonly OutgoingRecord[]): Promise<void> {
    const ids = records.map(({ value }) => decodeRetryDue(value).messageId.slice('msg_'.length));
    if (ids.length > 0) sends.push(ids);
    for (const id of ids.filter(isMade)) world.settle(id, true);
    return Promise.resolve();
  },
};

/** Runs one round, and everything that it starts. */
async function work({ tick, idle }: ResendRunner): Promise<void> {
  await tick();
  await idle();
}

function runner(holder: string, overrides: Partial<RunResendsDeps> = {}): ResendRunner {
  return createResendRunner({
    pageBudget: createPageBudget(16_777_216),
    holder,
    resends: world.resends,
    marks: world.marks,
    leases,
    records,
    retryDueTopic: 'due',
    rateLimitOf: () => Promise.resolve(null),
    circuits: { read: () => Promise.resolve(null) },
    isSuspended: () => Promise.resolve(false),
    nowMs: () => nowMs,
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
}

const DONE = { status: 'done', total: 5, succeeded: 5, failed: 0 };

function expectAllDone(): void {
  expect(world.running.get('rsnd_1')).toMatchObject(DONE);
  // One attempt each, however often it was published.
  expect([...world.deliveries.values()].map(({ attemptCount }) => attemptCount)).toEqual(
    IDS.map(() => 8),
  );
}

describe('a resend whose process stops in the middle of a page', () => {
  test('is continued at once elsewhere, with the deliveries that are not settled', async () => {
    isMade = (id) => id < 'dlv_3';
    const first = runner('a');
    const round = work(first);
    await eventually('the page is sent', () => sends.length > 0);
    await first.stop();
    await round;
    expect(leases.holders.size).toBe(0);
    isMade = () => true;
    await work(runner('b'));
    expect(sends).toEqual([IDS, ['dlv_3', 'dlv_4', 'dlv_5']]);
    expectAllDone();
  });

  test('does not wait for a Kafka that does not answer, and is continued elsewhere', async () => {
    let isAsked = false;
    const publish = (): Promise<never> => {
      isAsked = true;
      return new Promise(() => undefined);
    };
    const first = runner('a', { records: { publish } });
    const round = work(first);
    await eventually('Kafka is asked', () => isAsked);
    await first.stop();
    await round;
    expect(leases.holders.size).toBe(0);
    await work(runner('b'));
    expectAllDone();
  });

  test('is continued after a crash once the lease has ended', async () => {
    const hangs = new Promise<never>(() => undefined);
    void work(runner('a', { records: { publish: () => hangs } }));
    await eventually('the page is stored', () => world.running.get('rsnd_1')?.page.length === 5);
    await work(runner('b'));
    expect(sends).toEqual([]);
    leases.holders.delete(LEASE);
    await work(runner('b'));
    expect(sends).toEqual([IDS]);
    expectAllDone();
  });

  test.each<Moment>(['before', 'after'])(
    'is finished by the next one, wherever it ended: %s each of its calls',
    async (moment) => {
      for (let nth = 1; ; nth += 1) {
        await storeFailed();
        const { wrap, wasReached } = interruptAt(nth, moment);
        const { resends, marks } = world;
        const parts = { resends: wrap(resends), marks: wrap(marks), records: wrap(records) };
        await work(runner('a', { ...parts, leases: wrap(leases) }));
        leases.holders.clear();
        await work(runner('b'));
        expectAllDone();
        if (!wasReached()) break;
        expect(nth).toBeLessThan(50);
      }
    },
  );
});

describe('a resend whose lease another process has taken', () => {
  test('is left to the new holder and counted once', async () => {
    isMade = () => false;
    const round = work(runner('a'));
    await eventually('the page is sent', () => sends.length > 0);
    leases.holders.set(LEASE, 'b');
    await round;
    expect(leases.holders.get(LEASE)).toBe('b');
    isMade = () => true;
    await work(runner('b'));
    expect(sends).toEqual([IDS, IDS]);
    expectAllDone();
  });

  test('is not counted twice when the old holder hung and continues', async () => {
    let wake: () => void = () => undefined;
    const hung = new Promise<void>((resolve) => (wake = resolve));
    const late = { ...world.resends, endPage: afterwards(hung, world.resends.endPage) };
    const round = work(runner('a', { resends: late }));
    await eventually('the page is settled', () =>
      [...world.deliveries.values()].every(({ status }) => status === 'delivered'),
    );
    leases.holders.delete(LEASE);
    await work(runner('b'));
    wake();
    await round;
    expectAllDone();
  });
});

function afterwards<Args extends unknown[], Answer>(
  ready: Promise<void>,
  call: (...args: Args) => Promise<Answer>,
): (...args: Args) => Promise<Answer> {
  return async (...args) => {
    await ready;
    return call(...args);
  };
}

describe('a delivery whose record was lost', () => {
  test.each([
    ['two minutes', 120_000, false],
    ['four minutes while its company is suspended', 240_000, true],
  ])('is published again after %s, and not before', async (_when, afterMs, isSuspended) => {
    isMade = (id) => id !== 'dlv_2';
    let reads = 0;
    const read: typeof world.marks.read = (...args) => {
      reads += 1;
      return world.marks.read(...args);
    };
    const round = work(
      runner('a', {
        marks: { ...world.marks, read },
        isSuspended: () => Promise.resolve(isSuspended),
      }),
    );
    await eventually('the page is sent', () => sends.length > 0);
    nowMs = afterMs;
    const readBefore = reads;
    await eventually('it was looked at twice more', () => reads > readBefore + 1);
    expect(sends).toEqual([IDS]);
    isMade = () => true;
    nowMs = afterMs + 1;
    await round;
    expect(sends).toEqual([IDS, ['dlv_2']]);
    expectAllDone();
  });
});

test('after a round that cannot read the store, the next one works', async () => {
  const away = () => Promise.reject(new Error('MongoDB is away'));
  const all = runner('a', { resends: { ...world.resends, listRunning: away } });
  await work(all);
  expect(sends).toEqual([]);
  await work(runner('a'));
  expectAllDone();
});
