import { delayTopicsAmong, topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import { addPartitions } from '@posthorn/platform/kafka/topics/add-partitions.ts';
import { kafkaAccessOf } from '@posthorn/platform/kafka/connection/access.ts';
import {
  assertKafkaReachable,
  createKafkaClient,
  readTopics,
} from '@posthorn/platform/kafka/connection/connect.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import { z } from 'zod';
import { runSetup } from './run-setup.ts';

const { TOPIC_PARTITIONS } = settings.topics;

await runSetup({
  name: 'add-partitions',
  settings: z.object({ ...settings.kafka, TOPIC_PARTITIONS }),
  async run(values, logger) {
    const { TOPIC_PREFIX: prefix, TOPIC_PARTITIONS: partitions } = values;
    const access = kafkaAccessOf(values);
    const kafka = createKafkaClient('posthorn-setup', access, logger);
    await assertKafkaReachable(kafka, access.brokers);
    const existing = await readTopics(kafka);
    const specs = topicSpecs(topicNames(prefix, values.RETRY_DELAYS, values.DEFERRAL_DELAYS));
    const ours = new Set([
      ...specs.map(({ name }) => name),
      // Those of earlier settings too: the retry service reads them.
      ...delayTopicsAmong(prefix, existing.keys()).keys(),
    ]);
    const topics = new Map([...existing].filter(([name]) => ours.has(name)));
    const raised = await addPartitions(kafka, { topics, partitions, groupPrefix: prefix }, logger);
    return `${topics.size} topics with ${partitions} partitions, ${raised.length} of them raised`;
  },
});
