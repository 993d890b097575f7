import { topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import { assertKafkaReachable, createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createTopics } from '@posthorn/platform/kafka/topics/create-topics.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import { runSetup } from './run-setup.ts';

const config = z.object({ ...settings.kafka, ...settings.topics });

await runSetup('create-topics', config, async (values, logger) => {
  const { KAFKA_BROKERS: brokers, TOPIC_PREFIX, RETRY_DELAYS, DEFERRAL_DELAYS } = values;
  const kafka = createKafkaClient('posthorn-setup', brokers, logger);
  await assertKafkaReachable(kafka, brokers);
  const specs = topicSpecs(topicNames(TOPIC_PREFIX, RETRY_DELAYS, DEFERRAL_DELAYS));
  const layout = { partitions: values.TOPIC_PARTITIONS, replication: values.TOPIC_REPLICATION };
  const created = await createTopics(kafka, specs, layout, logger);
  return `${specs.length} topics, ${created.length} of them created`;
});
