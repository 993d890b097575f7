import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findSettingDrift, findUnpinned } from '@posthorn/domain/records/topic-drift.ts';
import { TOPIC_SETTINGS } from '@posthorn/domain/records/topics.ts';
import type { Admin } from 'kafkajs';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { sampleTopicSpec } from '../../../../test/support/samples/sample-topic-spec.ts';
import { openScratchLog, type ScratchLog } from '../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createLogger } from '../service/logger.ts';
import { addPartitions, createTopics } from './change-topics.ts';
import { createKafkaClient, readTopics } from './connect.ts';
import { observeTopics } from './topics.ts';

describe('create topics', () => {
  const env = createNamespace();
  const logger = createLogger('test', 'silent');
  const kafka = createKafkaClient('posthorn-test', { brokers: [env.KAFKA_BROKERS] }, logger);
  const layout = { partitions: 2, replication: 1 };
  const spec = (name: string) => sampleTopicSpec(env.TOPIC_PREFIX + name);
  let admin: Admin;

  beforeAll(async () => {
    admin = kafka.admin();
    await admin.connect();
  });

  afterAll(() => admin.disconnect());

  it('creates the topics that are missing, and returns their names', async () => {
    const [one, two] = [spec('one'), spec('two')];
    expect(await createTopics(kafka, [one], layout, logger)).toEqual([one.name]);
    expect(await createTopics(kafka, [one, two], layout, logger)).toEqual([two.name]);
    expect(await createTopics(kafka, [one, two], layout, logger)).toEqual([]);
    expect(await admin.fetchTopicOffsets(two.name)).toHaveLength(2);
  });

  it('pins every setting of the contract', async () => {
    const specs = [spec('settings')];
    await createTopics(kafka, specs, layout, logger);
    const { observed, unreadable } = await observeTopics(kafka, () => specs);
    expect(unreadable).toBeNull();
    expect(observed.map(({ settings }) => [...settings.keys()].sort())).toEqual([
      [...TOPIC_SETTINGS].sort(),
    ]);
    expect(findSettingDrift(specs, observed)).toEqual([]);
    expect(findUnpinned(specs, observed)).toEqual([]);
  });
});

describe('add partitions', () => {
  const { KAFKA_BROKERS } = createNamespace();
  const logger = createLogger('test', 'silent');
  const kafka = createKafkaClient('posthorn-test', { brokers: [KAFKA_BROKERS] }, logger);

  describe('More partitions', () => {
    let scratch: ScratchLog;

    beforeAll(async () => {
      scratch = await openScratchLog();
    });

    afterAll(() => scratch.records.close());

    const raise = (topic: string, from: number, to: number): Promise<string[]> =>
      addPartitions(
        kafka,
        { topics: new Map([[topic, from]]), partitions: to, groupPrefix: topic },
        logger,
      );

    it('are added once', async () => {
      const topic = await scratch.newTopic('once');
      expect(await raise(topic, 3, 6)).toEqual([topic]);
      expect((await readTopics(kafka)).get(topic)).toBe(6);
      expect(await raise(topic, 6, 6)).toEqual([]);
    });

    it('are refused when Kafka cannot have them, or keys would move to other processes', async () => {
      const topic = await scratch.newTopic('refused');
      await expect(raise(topic, 3, 2)).rejects.toThrow('3 partitions, more than 2');
      await expect(raise(topic, 3, 4)).rejects.toThrow('4 is no multiple of that');
      expect((await readTopics(kafka)).get(topic)).toBe(3);
    });

    it('are refused while a group reads the topic; records from before and after are all read', async () => {
      const topic = await scratch.newTopic('read');
      const read: string[] = [];
      const join = () =>
        scratch.records.consume({
          groupId: `${topic}-group`,
          topics: [topic],
          inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
          handle: ({ partition, key }) => Promise.resolve(void read.push(`${partition} ${key}`)),
        });
      const publish = async (records = scratch.records): Promise<string[]> => {
        const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
        await records.publish(keys.map((key) => ({ topic, key, value: Buffer.alloc(0) })));
        return keys;
      };
      const member = await join();
      await expect(raise(topic, 3, 6)).rejects.toThrow(`${topic}-group have members`);
      await member.stop(5_000);
      await publish();
      await raise(topic, 3, 6);
      // The producer of another process: one that runs learns of the partitions within five minutes.
      const another = await scratch.openAnother();
      const keys = await publish(another);
      const successor = await join();
      await eventually('all records', () => read.length === 120);
      await successor.stop(5_000);
      await another.close();
      for (const key of keys) {
        const partitions = read.filter((each) => each.endsWith(` ${key}`)).map((each) => each[0]);
        // Partition p, and p or p + 3: a group of one or three members has both in one process.
        expect(new Set(partitions.map((partition) => Number(partition) % 3)).size).toBe(1);
      }
    });
  });
});
