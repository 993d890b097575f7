import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type {
  ConsumeOptions,
  LogRecord,
  OutgoingRecord,
} from '@posthorn/platform/kafka/record-log.ts';

export interface OpenGroups {
  /** Names two topics of three partitions and a group that no other test uses. */
  newGroup: () => Promise<TestGroup>;
  close: () => Promise<void>;
}

export interface TestGroup {
  topics: readonly [string, string];
  publish: (records: readonly OutgoingRecord[]) => Promise<void>;
  /** Joins the group and reads both topics; resolves when it has partitions. */
  join: (options: Pick<ConsumeOptions, 'handle' | 'delayMs'>) => Promise<GroupReader>;
  /** Resolves when the condition holds; rejects when it does not come true. */
  until: (what: string, holds: () => boolean) => Promise<void>;
  nowMs: () => number;
}

export interface GroupReader {
  /** Commits what is done and ends; what it had not done is read by another member. */
  end: () => Promise<void>;
}

/** They end in two digits, by which the simulation chooses the partition. */
const keysOf = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `key-${String(n).padStart(2, '0')}`);

const never = (): Promise<void> => new Promise(() => undefined);

/** What the delivery logic relies on when it reads records as a member of a group. */
export function consumerGroupContract(open: () => Promise<OpenGroups>): void {
  describe('a consumer group', () => {
    let opened: OpenGroups;
    let group: TestGroup;
    let topic: string;
    let twin: string;
    const readers: GroupReader[] = [];

    beforeAll(async () => {
      opened = await open();
    });

    beforeEach(async () => {
      group = await opened.newGroup();
      [topic, twin] = group.topics;
    });

    // A reader left behind by a failed test would keep the whole run from ending.
    afterEach(async () => {
      for (const reader of readers.splice(0)) await reader.end();
    });

    afterAll(() => opened.close());

    async function join(options: Parameters<TestGroup['join']>[0]): Promise<GroupReader> {
      const reader = await group.join(options);
      readers.push(reader);
      return reader;
    }

    const publish = (keys: readonly string[], to = topic): Promise<void> =>
      group.publish(keys.map((key, n) => ({ topic: to, key, value: Buffer.from(`v${n}`) })));

    it('reads every record of one key, unchanged and in order', async () => {
      const got: LogRecord[] = [];
      const headers = { requestId: 'request-1' };
      const values = Array.from({ length: 30 }, (_, n) => Buffer.from([n, 255, 13]));
      await join({
        handle: (record) => Promise.resolve(void got.push(record)),
      });
      await group.publish(values.map((value) => ({ topic, key: 'key-01', value, headers })));
      await group.until('all of them', () => got.length === values.length);
      expect(got.map(({ value }) => value)).toEqual(values);
      expect(got[0]).toMatchObject({ topic, key: 'key-01', headers });
      expect(new Set(got.map(({ partition }) => partition)).size).toBe(1);
      const offsets = got.map(({ offset }) => offset);
      expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
    });

    it('gives what a member has not done to the next one, from the first of them on', async () => {
      const first: string[] = [];
      const reader = await join({
        handle({ value }) {
          first.push(String(value));
          return first.length > 3 ? never() : Promise.resolve();
        },
      });
      await publish(['key-01', 'key-01', 'key-01', 'key-01', 'key-01']);
      await group.until('all are begun', () => first.length === 5);
      readers.length = 0;
      await reader.end();
      const second: string[] = [];
      await join({
        handle: ({ value }) => Promise.resolve(void second.push(String(value))),
      });
      await group.until('the rest', () => second.length === 2);
      expect(second).toEqual(['v3', 'v4']);
    });

    it('hands a record over again after an outage, and the others meanwhile', async () => {
      const done: string[] = [];
      let failures = 0;
      await join({
        handle({ key }) {
          if (key === 'key-01' && (failures < 2 || done.length < 2)) {
            failures += 1;
            return Promise.reject(new Error('the store is away'));
          }
          done.push(key);
          return Promise.resolve();
        },
      });
      await publish(['key-01', 'key-01', 'key-02', 'key-03']);
      await group.until('all of them', () => done.length === 4);
      expect(failures).toBeGreaterThanOrEqual(2);
    });

    it('delays a partition until its next record is due, and no other partition', async () => {
      const at = new Map<string, number>();
      let dueAtMs = Infinity;
      await join({
        handle: ({ key }) => Promise.resolve(void at.set(key, group.nowMs())),
        delayMs: ({ key }) => (key === 'key-01' ? Math.min(dueAtMs - group.nowMs(), 100) : 0),
      });
      await publish(['key-01', ...keysOf(10).slice(2)]);
      await group.until('another partition', () => at.size > 0);
      expect([...at.keys()]).not.toContain('key-01');
      dueAtMs = group.nowMs() + 500;
      await group.until('the late one', () => at.has('key-01'));
      expect(at.get('key-01')).toBeGreaterThanOrEqual(dueAtMs);
    });

    it('gives each partition to one member, and the same one of every topic', async () => {
      const keys = keysOf(60);
      const readBy = new Map<string, string[]>();
      const joinAs = (name: string): Promise<GroupReader> =>
        join({
          handle: ({ key }) =>
            Promise.resolve(void readBy.set(key, [...(readBy.get(key) ?? []), name])),
        });
      await joinAs('one');
      await joinAs('two');
      await publish(keys);
      await publish(keys, twin);
      await group.until('every record', () =>
        keys.every((key) => (readBy.get(key) ?? []).length >= 2),
      );
      const names = [...readBy.values()];
      expect(names.every(([first, ...rest]) => rest.every((name) => name === first))).toBe(true);
      expect(new Set(names.flat())).toEqual(new Set(['one', 'two']));
    });
  });
}
