import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createPublishBudget,
  FLOOR_RECORDS,
  WAIT_MS,
  windowOf,
  type PublishBudget,
} from './publish-budget.ts';

const TICK_MS = 200;
const STEP_MS = 10;

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
      createPublishBudget({ partitionOf: (id) => Number(id) % 12, nowMs: () => this.nowMs }),
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
  let budget: PublishBudget;

  beforeEach(() => {
    nowMs = 1_000;
    budget = createPublishBudget({ partitionOf: () => 3, nowMs: () => nowMs });
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
    budget = createPublishBudget({ partitionOf: (id) => Number(id) % 12, nowMs: () => nowMs });
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
    budget = createPublishBudget({ partitionOf: (id) => Number(id) % 12, nowMs: () => nowMs });
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

  test('counts what was written before the clock was set back as read', () => {
    write(FLOOR_RECORDS);
    nowMs -= 500;
    budget.noteRead(new Map());
    expect(budget.roomOf('comp_a')).toBe(FLOOR_RECORDS);
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
