import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { KAFKA_CLIENTS, type KafkaClientName } from '../../service/kafka-clients.ts';
import type { Consumption, LogRecord, RecordLog } from '../record-log.ts';

const KEYS = Array.from({ length: 60 }, (_, n) => `k${n}`);

/** While KAFKA_CLIENT is changed from process to process, both clients are in use at once. */
describe.each(KAFKA_CLIENTS)('a group that a member on %s leads', (leader) => {
  const follower = KAFKA_CLIENTS.find((name) => name !== leader) ?? leader;
  const logs = new Map<KafkaClientName, RecordLog>();
  let scratch: ScratchLog;

  beforeAll(async () => {
    scratch = await openScratchLog({ client: leader });
    logs.set(leader, scratch.records);
    logs.set(follower, await scratch.openAnother(follower));
  });

  afterAll(() => Promise.all([...logs.values()].map((records) => records.close())));

  it('assigns partition p of every topic to one member, and partitions keys the same with both clients', async () => {
    const fresh = await scratch.newTopic('fresh');
    const topics = [fresh, await scratch.newTopic('retries')];
    const seen: { by: KafkaClientName; record: LogRecord }[] = [];
    const assigned = new Map<KafkaClientName, number>();
    const join = (by: KafkaClientName): Promise<Consumption> | undefined =>
      logs.get(by)?.consume({
        groupId: `${fresh}-group`,
        topics,
        inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
        handle: (record) => Promise.resolve(void seen.push({ by, record })),
        onAssigned: () => assigned.set(by, (assigned.get(by) ?? 0) + 1),
      });
    const first = await join(leader);
    const second = await join(follower);
    await eventually('both know their share', () => (assigned.get(leader) ?? 0) >= 2);
    for (const records of logs.values()) {
      await records.publish(
        KEYS.flatMap((key) => topics.map((topic) => ({ topic, key, value: Buffer.alloc(0) }))),
      );
    }
    await eventually('all', () => seen.length === 2 * 2 * KEYS.length);
    for (const key of KEYS) {
      const ofKey = seen.filter(({ record }) => record.key === key);
      expect(new Set(ofKey.map(({ record }) => record.partition)).size).toBe(1);
      expect(new Set(ofKey.map(({ by }) => by)).size).toBe(1);
    }
    expect(new Set(seen.map(({ by }) => by)).size).toBe(2);
    await Promise.all([first?.stop(5_000), second?.stop(5_000)]);
  });

  it('shares partitions evenly where topics need not stay together', async () => {
    const first = await scratch.newTopic('first');
    const topics = [first, await scratch.newTopic('second'), await scratch.newTopic('third')];
    const owned = new Map<string, KafkaClientName>();
    const members = [...logs].map(([by, records]) =>
      records.consume({
        groupId: `${first}-group`,
        topics,
        sharing: { kind: 'evenly', after: 0 },
        inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
        handle: ({ topic, partition }) =>
          Promise.resolve(void owned.set(`${topic}/${partition}`, by)),
      }),
    );
    const joined = await Promise.all(members);
    const counts = () => {
      const all = [...owned.values()];
      return [...logs.keys()].map((name) => all.filter((by) => by === name).length).sort();
    };
    // 9 partitions. Together, one member would have two of each topic.
    await eventually('4 and 5 partitions', async () => {
      await scratch.records.publish(
        KEYS.flatMap((key) => topics.map((topic) => ({ topic, key, value: Buffer.alloc(0) }))),
      );
      return counts().join() === '4,5';
    });
    await Promise.all(joined.map((member) => member.stop(5_000)));
  });
});
