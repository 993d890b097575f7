import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { Commit } from '../offsets/owned-partitions.ts';
import type { Consumption, LogRecord, RecordLog } from '../record-log.ts';

const ROUNDS = 6;
const PER_ROUND = 300;

describe('the record log while members come and go', () => {
  let scratch: ScratchLog;
  let others: RecordLog;
  /** topic/partition → the offsets committed by any member, in order. */
  const commits = new Map<string, number[]>();

  function onCommit(made: readonly Commit[]): void {
    for (const { topic, partition, offset } of made) {
      const key = `${topic}/${partition}`;
      commits.set(key, [...(commits.get(key) ?? []), offset]);
    }
  }

  beforeAll(async () => {
    scratch = await openScratchLog({ onCommit });
    others = await scratch.openAnother();
  });

  afterAll(() => Promise.all([scratch.records.close(), others.close()]));

  it('loses nothing, never commits backwards and never stalls', async () => {
    const topic = await scratch.newTopic('rebalanced');
    const done = new Set<string>();
    let assignments = 0;
    let rebalances = 0;
    let begunMeanwhile = 0;
    const join = (records: RecordLog): Promise<Consumption> => {
      let isChanging = false;
      return records.consume({
        groupId: `${topic}-group`,
        topics: [topic],
        stallMs: 10_000,
        inFlightLimits: { pauseAt: 100, resumeAt: 50 },
        handle: async ({ value }) => {
          if (isChanging) begunMeanwhile += 1;
          await new Promise((resolve) => setImmediate(resolve));
          done.add(value.toString());
        },
        onRebalancing() {
          rebalances += 1;
          isChanging = true;
        },
        onAssigned() {
          assignments += 1;
          isChanging = false;
        },
      });
    };
    const publish = (round: number): Promise<void> =>
      scratch.records.publish(
        Array.from({ length: PER_ROUND }, (_, n) => ({
          topic,
          key: `k${n}`,
          value: Buffer.from(`${round}-${n}`),
        })),
      );
    const first = await join(scratch.records);
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = assignments;
      const published = publish(round);
      const second = await join(others);
      // Both the member that joins and the one that gives partitions up.
      await eventually('both know their share', () => assignments >= before + 2);
      await Promise.all([published, publish(ROUNDS + round)]);
      await second.stop(5_000);
    }
    await eventually('all of them', () => done.size === 2 * ROUNDS * PER_ROUND);
    expect([rebalances >= ROUNDS, begunMeanwhile]).toEqual([true, 0]);
    await first.stop(5_000);
    expect(first.isAlive()).toBe(true);
    expect(commits.size).toBe(3);
    for (const offsets of commits.values()) {
      expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    }
    const last = [...commits.values()].map((offsets) => offsets.at(-1) ?? 0);
    expect(last.reduce((a, b) => a + b, 0)).toBe(2 * ROUNDS * PER_ROUND);
  });

  it('hands nothing over again that was finished when a member joined', async () => {
    const topic = await scratch.newTopic('finished');
    const handled: string[] = [];
    const join = (records: RecordLog): Promise<Consumption> =>
      records.consume({
        groupId: `${topic}-group`,
        topics: [topic],
        inFlightLimits: { pauseAt: 100, resumeAt: 50 },
        handle: ({ value }) => Promise.resolve(void handled.push(value.toString())),
      });
    const publishing: Promise<void>[] = [];
    const publishOne = (): void => {
      const name = String(publishing.length);
      const record = { topic, key: name, value: Buffer.from(name) };
      publishing.push(scratch.records.publish([record]));
    };
    const first = await join(scratch.records);
    const timer = setInterval(publishOne, 10);
    await eventually('records are read', () => handled.length >= 20);
    const second = await join(others);
    clearInterval(timer);
    await Promise.all(publishing);
    await eventually('all are read', () => new Set(handled).size === publishing.length);
    expect(handled).toHaveLength(publishing.length);
    await Promise.all([first.stop(1_000), second.stop(1_000)]);
  });

  it('tells records that a former owner may have begun from later ones', async () => {
    const topic = await scratch.newTopic('inherited');
    const seen: LogRecord[] = [];
    await scratch.records.publish([{ topic, key: 'k', value: Buffer.from('early') }]);
    const consumption = await scratch.records.consume({
      groupId: `${topic}-group`,
      topics: [topic],
      inFlightLimits: { pauseAt: 10, resumeAt: 5 },
      handle: (record) => Promise.resolve(void seen.push(record)),
    });
    await eventually('the early one', () => seen.length === 1);
    await scratch.records.publish([{ topic, key: 'k', value: Buffer.from('late') }]);
    await eventually('the late one', () => seen.length === 2);
    expect(seen.map(({ isInherited }) => isInherited)).toEqual([true, false]);
    await consumption.stop(1_000);
  });
});
