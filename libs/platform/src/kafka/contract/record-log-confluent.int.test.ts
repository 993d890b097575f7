import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { KafkaContainer, type StartedKafkaContainer } from '@testcontainers/kafka';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { dockerProblem } from '../../../../../tools/local-stack/docker/choose-mode.ts';

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
      await scratch.records.close();
      await container.stop();
    }, 60_000);

    it('stores records and reads them back', async () => {
      const topic = await scratch.newTopic('confluent');
      const seen: string[] = [];
      const values = ['one', 'two', 'three'];
      await scratch.records.publish(
        values.map((value) => ({ topic, key: value, value: Buffer.from(value) })),
      );
      const consumption = await scratch.records.consume({
        groupId: `${topic}-group`,
        topics: [topic],
        inFlightLimits: { pauseAt: 10, resumeAt: 5 },
        handle: ({ value }) => Promise.resolve(void seen.push(value.toString())),
      });
      await eventually('all three', () => seen.length === values.length, 30_000);
      expect([...seen].sort()).toEqual([...values].sort());
      await consumption.stop(1_000);
    });
  });
} else {
  const skipped = `the record log on Confluent's broker in Docker: NOT CHECKED, ${problem}`;
  process.stderr.write(`${skipped}\n`);
  it.skip(skipped, () => undefined);
}
