import { KafkaContainer, type StartedKafkaContainer } from '@testcontainers/kafka';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Admin } from 'kafkajs';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import {
  startTwoBrokers,
  type TwoBrokers,
} from '../../../../../test/support/stores/two-brokers.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { dockerProblem } from '../../../../../tools/local-stack/docker/choose-mode.ts';

const TOPIC = 'moved';
const KEYS = Array.from({ length: 60 }, (_, n) => `key-${n}`);

describe('records for a partition that has moved to another broker', () => {
  let cluster: TwoBrokers | undefined;
  let scratch: ScratchLog;
  let admin: Admin;

  beforeAll(async () => {
    cluster = await startTwoBrokers();
  }, 180_000);

  afterAll(() => cluster?.stop());

  beforeAll(async () => {
    scratch = await openScratchLog({ brokers: cluster?.brokers ?? [] });
    admin = scratch.kafka.admin();
    await admin.connect();
    await admin.createTopics({
      topics: [
        {
          topic: TOPIC,
          replicaAssignment: [
            { partition: 0, replicas: [1] },
            { partition: 1, replicas: [1] },
            { partition: 2, replicas: [2] },
          ],
        },
      ],
    });
  });

  afterAll(async () => {
    await admin.disconnect();
    await scratch.close();
  });

  const leaderOf = async (partition: number): Promise<number | undefined> => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [TOPIC] });
    return topics[0]?.partitions.find(({ partitionId }) => partitionId === partition)?.leader;
  };

  /** How many records each partition has. */
  const counts = async (): Promise<number[]> => {
    const offsets = await admin.fetchTopicOffsets(TOPIC);
    return offsets.sort((a, b) => a.partition - b.partition).map(({ high }) => Number(high));
  };

  /** Publishes one record for each key, and repeats it after a rejection as the services do. */
  async function publish(): Promise<void> {
    const records = KEYS.map((key) => ({ topic: TOPIC, key, value: Buffer.from(key) }));
    await eventually('the records are published', () =>
      scratch.records.publish(records).then(
        () => true,
        () => false,
      ),
    );
  }

  it('are stored once, like those for the partitions that have not', async () => {
    await publish();
    const before = await counts();
    expect(before.every((count) => count > 0)).toBe(true);

    // The producer learns of it only from the answer to its next request.
    const partitionAssignment = [{ partition: 0, replicas: [2] }];
    await admin.alterPartitionReassignments({ topics: [{ topic: TOPIC, partitionAssignment }] });
    await eventually('the other broker leads it', async () => (await leaderOf(0)) === 2);

    await publish();
    const added = (await counts()).map((count, partition) => count - (before[partition] ?? 0));
    expect(added).toEqual(before);
  });
});

/** The broker of another distribution than that of docker-compose.yml, with listeners that the library sets up. */
const IMAGE = 'confluentinc/cp-kafka:7.9.1';
const PORT = 9_093;
const STARTED_WITHIN_MS = 300_000;

const problem = dockerProblem();

if (problem === undefined) {
  describe("the record log on Confluent's broker in Docker", () => {
    let container: StartedKafkaContainer;
    let scratch: ScratchLog;

    beforeAll(async () => {
      container = await new KafkaContainer(IMAGE).withKraft().start();
      const brokers = [`${container.getHost()}:${container.getMappedPort(PORT)}`];
      scratch = await openScratchLog({ brokers });
    }, STARTED_WITHIN_MS);

    afterAll(async () => {
      await scratch.close();
      await container.stop();
    });

    it('stores records and reads them back', async () => {
      const topic = await scratch.newTopic('confluent');
      const seen: string[] = [];
      const keys = ['one', 'two', 'three'];
      await scratch.publish(topic, keys);
      await scratch.consume(topic, ({ key }) => Promise.resolve(void seen.push(key)));
      await eventually('all three', () => seen.length === keys.length, 30_000);
      expect(seen.sort()).toEqual(keys.sort());
      await scratch.stopMembers();
    });
  });
} else {
  const skipped = `the record log on Confluent's broker in Docker: NOT CHECKED, ${problem}`;
  process.stderr.write(`${skipped}\n`);
  it.skip(skipped, () => undefined);
}
