import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import type { ReportedTimes } from '@posthorn/platform/redis/reading-positions.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { Publication } from './publication.ts';
import {
  createFollowReaders,
  createPublishBudget,
  createPublishPace,
  FLOOR_RECORDS,
  SLICE_RECORDS,
  type PublishBudget,
  WAIT_MS,
  windowOf,
} from './publish-budget.ts';

const TICK_MS = 200;
const STEP_MS = 10;
const BROKER_AHEAD_MS = -300;

describe('the window of a company', () => {
  test('is the floor while nothing of it is read', () => {
    expect(windowOf(0, 0)).toBe(FLOOR_RECORDS);
  });

  test('is what is read of it while it waits, and the floor', () => {
    expect(windowOf(2_000, WAIT_MS)).toBe(FLOOR_RECORDS + 1_500);
  });

  test('grows while its records are read at once, and shrinks while they wait for longer', () => {
    expect(windowOf(2_000, 0)).toBe(FLOOR_RECORDS + 2_250);
    expect(windowOf(2_000, 3 * WAIT_MS)).toBe(Math.round(FLOOR_RECORDS / 3) + 500);
    expect(windowOf(0, 60_000)).toBe(20);
  });
});

interface Log {
  companyId: string;
  partition: number;
  atMs: number;
}

/** An installation that reads so many records per second, in the order in which gateways wrote them. */
class Installation {
  nowMs = 0;
  readonly read: Record<string, number> = {};
  private log: Log[] = [];
  private nextWebhook = 0;
  private times = new Map<number, number>();
  private readonly readPerSecond: number;
  private readonly gateways: readonly PublishBudget[];

  constructor(readPerSecond: number, gateways: number) {
    this.readPerSecond = readPerSecond;
    this.gateways = Array.from({ length: gateways }, () =>
      createPublishBudget({
        partitionOf: (id) => Number(id) % 12,
        brokerAheadMs: () => BROKER_AHEAD_MS,
        // The gateways are 300 ms ahead of the brokers.
        monotonicMs: () => this.nowMs - BROKER_AHEAD_MS,
      }),
    );
  }

  get unread(): number {
    return this.log.length;
  }

  /** How long the record that is read next has waited. */
  get waitedMs(): number {
    return this.nowMs - (this.log[0]?.atMs ?? this.nowMs);
  }

  /** In each step of 10 ms, each gateway publishes up to so many records of these companies as it may. */
  pass(wanted: Readonly<Record<string, number>>): void {
    for (let step = 0; step < TICK_MS / STEP_MS; step += 1) {
      for (const gateway of this.gateways) this.publish(gateway, wanted);
      this.nowMs += STEP_MS;
      const read = this.log.splice(0, (this.readPerSecond * STEP_MS) / 1_000);
      for (const { companyId, partition, atMs } of read) {
        this.read[companyId] = (this.read[companyId] ?? 0) + 1;
        this.times.set(partition, atMs);
      }
    }
    for (const gateway of this.gateways) gateway.noteRead(this.times);
  }

  private publish(gateway: PublishBudget, wanted: Readonly<Record<string, number>>): void {
    for (const [companyId, records] of Object.entries(wanted)) {
      const count = Math.max(0, Math.min(records, gateway.roomOf(companyId)));
      const ids = Array.from({ length: count }, () => String((this.nextWebhook += 1)));
      gateway.noteWritten(companyId, ids);
      for (const id of ids)
        this.log.push({ companyId, partition: Number(id) % 12, atMs: this.nowMs });
    }
  }

  passFor(ms: number, wanted: Readonly<Record<string, number>>): void {
    for (let left = ms; left > 0; left -= TICK_MS) this.pass(wanted);
  }
}

/** A gateway publishes up to 40,000 records a second. */
const MANY = 400;

describe('a company that publishes more than is read', () => {
  test.each([1, 4])('keeps all others waiting for about a second, with %d gateways', (gateways) => {
    const installation = new Installation(2_500 * gateways, gateways);
    let longestMs = 0;
    for (let tick = 0; tick < 100; tick += 1) {
      installation.pass({ a: MANY });
      longestMs = Math.max(longestMs, installation.waitedMs);
    }
    expect(longestMs).toBeLessThan(1_800);
    expect(installation.waitedMs).toBeLessThan(1_300);
  });

  test.each([
    [200, 2_500],
    [10_000, 1_000],
  ])('keeps others waiting for little more when %d records a second are read', (read, mostMs) => {
    const installation = new Installation(read, 1);
    installation.passFor(20_000, { a: MANY });
    expect(installation.waitedMs).toBeLessThan(mostMs);
  });

  test('gets all that the installation delivers while it is alone, from the second second on', () => {
    const installation = new Installation(20_000, 2);
    installation.passFor(5_000, { a: MANY });
    const before = installation.read.a ?? 0;
    installation.passFor(10_000, { a: MANY });
    expect((installation.read.a ?? 0) - before).toBe(200_000);
  });

  test('shares with another one that begins later', () => {
    const installation = new Installation(2_500, 1);
    installation.passFor(20_000, { a: MANY });
    installation.passFor(20_000, { a: MANY, b: MANY });
    const before = { ...installation.read };
    installation.passFor(20_000, { a: MANY, b: MANY });
    const gotOf = (id: string): number => (installation.read[id] ?? 0) - (before[id] ?? 0);
    expect(gotOf('a') / gotOf('b')).toBeGreaterThan(0.8);
    expect(gotOf('a') / gotOf('b')).toBeLessThan(1.25);
  });

  test('takes nothing from one that publishes little', () => {
    const installation = new Installation(2_500, 1);
    installation.passFor(10_000, { a: MANY });
    installation.passFor(20_000, { a: MANY, b: 1 });
    expect(installation.read.b).toBeGreaterThan(1_850);
  });
});

describe('the budget', () => {
  let nowMs: number;
  let brokerAheadMs: number;
  let budget: PublishBudget;

  const openBudget = (partitionOf: (webhookId: string) => number): PublishBudget =>
    createPublishBudget({
      partitionOf,
      brokerAheadMs: () => brokerAheadMs,
      monotonicMs: () => nowMs,
    });

  beforeEach(() => {
    nowMs = 1_000;
    brokerAheadMs = 0;
    budget = openBudget(() => 3);
  });

  const write = (count: number): void => {
    budget.noteWritten('comp_a', Array<string>(count).fill('wh_1'));
  };

  test('is used up by what is unread, and comes back when it is read', () => {
    write(FLOOR_RECORDS);
    expect([budget.roomOf('comp_a'), budget.roomOf('comp_b')]).toEqual([0, FLOOR_RECORDS]);
    nowMs += 200;
    budget.noteRead(new Map([[3, 999]]));
    expect(budget.roomOf('comp_a')).toBe(0);
    budget.noteRead(new Map([[3, 1_000]]));
    expect(budget.roomOf('comp_a')).toBeGreaterThanOrEqual(FLOOR_RECORDS);
  });

  test('has no limit while Redis is away, and has one again afterwards', () => {
    write(FLOOR_RECORDS);
    budget.noteRead(null);
    expect(budget.roomOf('comp_a')).toBe(Infinity);
    write(50_000);
    expect([budget.roomOf('comp_a'), budget.isReadDue()]).toEqual([Infinity, true]);
    budget.noteRead(new Map());
    expect(budget.roomOf('comp_a')).toBe(FLOOR_RECORDS);
  });

  test('counts nothing in partitions that no dispatcher reports, and everything in the others', () => {
    budget = openBudget((id) => Number(id) % 12);
    const ids = Array.from({ length: FLOOR_RECORDS / 2 }, (_, index) => String(index));
    const times = (ofLast: number | null) =>
      new Map(
        Array.from({ length: 12 }, (_, partition) => [partition, partition < 11 ? nowMs : ofLast]),
      );
    for (let tick = 0; tick < 100; tick += 1) {
      budget.noteWritten('comp_a', ids);
      nowMs += 200;
      budget.noteRead(times(null));
    }
    expect(budget.roomOf('comp_a')).toBeGreaterThan(FLOOR_RECORDS);
    const before = budget.roomOf('comp_a');
    budget.noteWritten('comp_a', ['11', '23']);
    expect(budget.roomOf('comp_a')).toBe(before);
    // Written after the positions were requested.
    budget.noteRead(new Map());
    expect(budget.roomOf('comp_a')).toBeGreaterThanOrEqual(FLOOR_RECORDS);
    expect(budget.partitions()).toEqual(new Set([11]));
    budget.noteRead(times(nowMs - 1));
    budget.noteWritten('comp_b', ['11', '23']);
    expect(budget.roomOf('comp_b')).toBe(FLOOR_RECORDS - 2);
  });

  test('holds one entry for the records of 50 ms in a partition, and none of them is lost', () => {
    write(1);
    const usedBytes = budget.usedBytes();
    budget = openBudget((id) => Number(id) % 12);
    for (let record = 0; record < 360; record += 1) {
      nowMs = 1_000 + Math.floor(record / 4);
      budget.noteWritten('comp_a', [String(record)]);
    }
    expect(budget.usedBytes()).toBe(24 * usedBytes);
    expect(budget.roomOf('comp_a')).toBe(FLOOR_RECORDS - 360);
    budget.noteRead(new Map());
    budget.noteWritten('comp_a', ['1']);
    budget.noteRead(new Map());
    budget.noteRead(new Map([[1, nowMs]]));
    expect(budget.partitions()).toEqual(new Set([0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
  });

  test('counts what has been unread for a minute as read', () => {
    write(FLOOR_RECORDS);
    nowMs += 60_000;
    budget.noteRead(new Map());
    expect(budget.roomOf('comp_a')).toBe(FLOOR_RECORDS);
  });

  test('compares by the clock of the broker, whatever the clock of this process says', () => {
    brokerAheadMs = 1_700_000_000_000;
    write(FLOOR_RECORDS);
    nowMs += 200;
    budget.noteRead(new Map([[3, brokerAheadMs + 999]]));
    expect(budget.roomOf('comp_a')).toBe(0);
    budget.noteRead(new Map([[3, brokerAheadMs + 1_000]]));
    expect(budget.roomOf('comp_a')).toBeGreaterThanOrEqual(FLOOR_RECORDS);
  });

  test('counts records as read with the next ones where the clock of the broker is not known yet', () => {
    brokerAheadMs = -Infinity;
    write(FLOOR_RECORDS);
    budget.noteRead(new Map());
    expect(budget.roomOf('comp_a')).toBe(0);
    budget.noteRead(new Map([[3, 1]]));
    expect(budget.roomOf('comp_a')).toBeGreaterThanOrEqual(FLOOR_RECORDS);
  });

  test('keeps nothing of a company of which nothing is unread', () => {
    write(10);
    expect([[...budget.partitions()], budget.usedBytes() > 0]).toEqual([[3], true]);
    for (let tick = 0; tick < 100; tick += 1) {
      nowMs += 200;
      budget.noteRead(new Map([[3, nowMs]]));
    }
    expect([budget.isReadDue(), budget.usedBytes(), budget.partitions().size]).toEqual([
      false,
      0,
      0,
    ]);
  });
});

describe('publish pace', () => {
  /** The webhooks of each batch that Kafka has got. */
  let sends: string[][];
  let timers: { ms: number; run: () => void }[];
  /** How long a company waits after a millisecond of work. */
  let waitPerMs: Record<string, number>;
  let nowMs: number;
  let publication: Publication;
  /** What the store has, for messages that are read back. */
  let stored: Message[];
  /** Resolves when Kafka has acknowledged a batch. */
  let sent: () => Promise<void>;

  const send = (
    number: number,
    companyId: string,
    targetCount: number,
    changes: Partial<Message> = {},
  ): void => {
    const message: Message = {
      id: `msg_${number}`,
      companyId,
      appId: null,
      payload: '{}',
      targets: Array.from({ length: targetCount }, (_, index) => `wh_${number}_${index}`),
      disabledTargets: new Set<string>(),
      publisherId: 'gw_1',
      requestId: 'request-1',
      eventType: null,
      idempotency: null,
      createdAtMs: 0,
      ...changes,
    };
    stored.push(message);
    publication.add([message]);
  };
  const sizes = (): number[] => sends.map(({ length }) => length);
  const passTimer = (): number => {
    const timer = timers.shift();
    timer?.run();
    return timer?.ms ?? -1;
  };

  beforeEach(() => {
    [sends, timers, waitPerMs, nowMs, sent] = [[], [], {}, 0, () => Promise.resolve()];
    stored = [];
    open(16_777_216);
  });

  function open(publishQueueBytes: number): void {
    publication = new Publication({
      topic: 'created',
      publisherId: 'gw_1',
      publishQueueBytes,
      pace: createPublishPace({
        pauseMs: (companyId, workMs) => workMs * (waitPerMs[companyId] ?? 0),
        after: (ms, run) => void timers.push({ ms, run }),
      }),
      firstWatermark: '',
      assertOwner: () => undefined,
      logger: createLogger('test', 'silent'),
      nowMs: () => nowMs,
      monotonicMs: () => 0,
      records: {
        publish(records) {
          sends.push(records.map(({ key }) => key));
          return sent();
        },
      },
      messages: {
        pageOf: ({ afterId, limit }) =>
          Promise.resolve(stored.filter(({ id }) => id > afterId).slice(0, limit)),
      },
    });
  }

  describe('a message to many webhooks', () => {
    test('fills each batch while its company is within its share', async () => {
      send(1, 'comp_a', 1_000);
      await eventually('both batches', () => sends.length === 2);
      expect([sizes(), timers]).toEqual([[500, 500], []]);
    });

    test('does not wait when it is in order: a later one of its company would overtake it', async () => {
      waitPerMs = { comp_a: 16 };
      send(1, 'comp_a', 600, { isOrdered: true });
      send(2, 'comp_a', 1);
      await eventually('all records', () => sends.length === 2);
      expect([sizes(), timers]).toEqual([[500, 101], []]);
      expect(sends[1]?.at(-1)).toBe('wh_2_0');
    });

    test('waits after each 100 records beyond it, and the watermark waits for the last ones', async () => {
      waitPerMs = { comp_a: 16 };
      send(1, 'comp_a', 250);
      await eventually('the first wait', () => timers.length === 1);
      expect([sizes(), publication.state()]).toEqual([
        [SLICE_RECORDS],
        { watermark: '', unpublished: 1, behindMs: 0, stuckMs: null, waitingCompanies: 0 },
      ]);
      expect(passTimer()).toBe(40);
      await eventually('the second wait', () => timers.length === 1);
      passTimer();
      await eventually('the end', () => publication.state().unpublished === 0);
      expect([sizes(), publication.state().watermark]).toEqual([[100, 100, 50], 'msg_1']);
      expect(new Set(sends.flat()).size).toBe(250);
    });

    test('stops no other message while it waits, of its company or of others', async () => {
      waitPerMs = { comp_a: 16 };
      send(1, 'comp_a', 200);
      await eventually('the wait', () => timers.length === 1);
      send(2, 'comp_a', 1);
      send(3, 'comp_b', 1);
      await eventually('both', () => sends.flat().length === 102);
      expect(sends.slice(1).flat()).toEqual(['wh_2_0', 'wh_3_0']);
      expect(publication.state().watermark).toBe('');
    });

    test('goes on after another one of its company has waited, not beside it', async () => {
      waitPerMs = { comp_a: 8 };
      send(1, 'comp_a', 300);
      send(2, 'comp_a', 300);
      await eventually('the waits', () => sends.flat().length === 200);
      const before = sends.length;
      for (let left = 400; left > 0; left -= 100) {
        expect(timers).toHaveLength(1);
        expect(passTimer()).toBe(20);
        await eventually('the next part', () => sends.flat().length === 600 - left + 100);
      }
      expect(sizes().slice(before)).toEqual([100, 100, 100, 100]);
      expect(publication.state()).toMatchObject({ watermark: 'msg_2', unpublished: 0 });
    });

    test('waits however long it has waited', async () => {
      waitPerMs = { comp_a: 16 };
      send(1, 'comp_a', 300);
      await eventually('the wait', () => timers.length === 1);
      nowMs = 600_000;
      expect(passTimer()).toBe(40);
      await eventually('the next rest', () => timers.length === 1);
      expect(sizes()).toEqual([100, 100]);
    });

    test('waits no more once the gateway stops', async () => {
      waitPerMs = { comp_a: 16 };
      send(1, 'comp_a', 1_000);
      await eventually('the wait', () => timers.length === 1);
      await publication.close(60_000);
      expect([sizes(), publication.state().unpublished]).toEqual([[100, 500, 400], 0]);
      expect(passTimer()).toBe(40);
      expect(sends.flat()).toHaveLength(1_000);
    });

    test('does not rest either when a part of it is under way as the gateway stops', async () => {
      waitPerMs = { comp_a: 16 };
      let acknowledge = (): void => undefined;
      sent = () => new Promise((resolve) => (acknowledge = resolve));
      send(1, 'comp_a', 200);
      const closed = publication.close(60_000);
      acknowledge();
      sent = () => Promise.resolve();
      await closed;
      expect([sizes(), publication.state().unpublished, timers]).toEqual([[100, 100], 0, []]);
    });

    test('is published, and so are later ones, when the next one overflows while all others rest', async () => {
      open(200_000);
      waitPerMs = { comp_a: 16 };
      for (let number = 1; number <= 4; number += 1) send(number, 'comp_a', 1_000);
      await eventually(
        'the wait',
        () => timers.length === 1 && publication.state().unpublished > 0,
      );
      send(5, 'comp_a', 1_000);
      send(6, 'comp_b', 1);
      await eventually('the end', () => {
        passTimer();
        return publication.state().unpublished === 0;
      });
      expect(new Set(sends.flat()).size).toBe(5_001);
      expect(publication.state().watermark).toBe('msg_6');
    });

    test('is left to the sweep when its gateway has lost it while it rested', async () => {
      waitPerMs = { comp_a: 16 };
      send(1, 'comp_a', 1_000);
      await eventually('the wait', () => timers.length === 1);
      publication.abandon();
      passTimer();
      await publication.close(0);
      expect(sizes()).toEqual([100]);
    });
  });
});

describe('follow readers', () => {
  let nowMs: number;
  let isDue: boolean;
  let answer: () => Promise<ReportedTimes>;
  /** What the budget was given. */
  let noted: (ReportedTimes | null)[];
  let released: number;
  let follow: () => Promise<void>;

  const POSITIONS: ReportedTimes = new Map([[3, 1_000]]);
  const away = () => Promise.reject(new Error('Redis is away'));

  beforeEach(() => {
    [nowMs, isDue, noted, released] = [0, true, [], 0];
    answer = () => Promise.resolve(POSITIONS);
    follow = createFollowReaders({
      budget: {
        isReadDue: () => isDue,
        partitions: () => new Set([3]),
        noteRead: (positions) => noted.push(positions),
      },
      positions: { read: () => answer() },
      releaseWaiting: () => (released += 1),
      nowMs: () => nowMs,
    });
  });

  describe('a gateway that follows the dispatchers', () => {
    test('notes what they report, and goes on with companies that wait', async () => {
      await follow();
      expect([noted, released]).toEqual([[POSITIONS], 1]);
    });

    test('asks nothing while nothing is unread', async () => {
      isDue = false;
      await follow();
      expect([noted, released]).toEqual([[], 0]);
    });

    test('keeps the budgets while Redis does not answer, for two seconds', async () => {
      answer = away;
      nowMs = 1_999;
      await follow();
      expect(noted).toEqual([]);
      nowMs = 2_000;
      await follow();
      expect([noted, released]).toEqual([[null], 2]);
    });

    test('counts the two seconds from the last answer, and not while nothing was asked', async () => {
      nowMs = 10_000;
      await follow();
      isDue = false;
      nowMs = 20_000;
      await follow();
      [isDue, answer, nowMs] = [true, away, 21_000];
      await follow();
      expect(noted).toEqual([POSITIONS]);
    });
  });
});
