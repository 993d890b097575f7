import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { createNamespace } from '../../../../../test/support/process/namespace.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connection/connect.ts';
import type { Consumption } from '../record-log.ts';

/** kafkajs checks for new partitions every five minutes by itself, this client never. */
describe('a topic that gets more partitions', () => {
  let scratch: ScratchLog;

  beforeAll(async () => {
    scratch = await openScratchLog({ client: 'platformatic' });
  });

  afterAll(() => scratch.records.close());

  async function addPartitions(topic: string, count: number): Promise<void> {
    const { KAFKA_BROKERS } = createNamespace();
    const logger = createLogger('test', 'silent');
    const admin = createKafkaClient('posthorn-test', { brokers: [KAFKA_BROKERS] }, logger).admin();
    await admin.connect();
    await admin.createPartitions({ topicPartitions: [{ topic, count }] });
    await admin.disconnect();
  }

  it('is read completely by the members that it had before', async () => {
    const topic = await scratch.newTopic('grown');
    const partitions = new Set<number>();
    const join = (): Promise<Consumption> =>
      scratch.records.consume({
        groupId: `${topic}-group`,
        topics: [topic],
        inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
        handle: ({ partition }) => Promise.resolve(void partitions.add(partition)),
      });
    const members = [await join(), await join()];
    await addPartitions(topic, 6);
    await eventually('records of all partitions', async () => {
      const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
      await scratch.records.publish(keys.map((key) => ({ topic, key, value: Buffer.alloc(0) })));
      return partitions.size === 6;
    });
    expect(members.every((each) => each.isRunning())).toBe(true);
    await Promise.all(members.map((each) => each.stop(5_000)));
  });
});
