import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ConfigResourceTypes, type Admin } from 'kafkajs';
import { createNamespace } from '../../../../../test/support/process/namespace.ts';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connect.ts';
import { createTopics } from './create-topics.ts';

const env = createNamespace();
const logger = createLogger('test', 'silent');
const kafka = createKafkaClient('posthorn-test', { brokers: [env.KAFKA_BROKERS] }, logger);
const layout = { partitions: 2, replication: 1 };
const spec = (name: string) => ({ name: env.TOPIC_PREFIX + name, retentionMs: 3_600_000 });
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

it('sets the topics to broker timestamps and to no compression', async () => {
  const { name } = spec('settings');
  await createTopics(kafka, [spec('settings')], layout, logger);
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name }],
  });
  const settings = new Map(
    resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]),
  );
  expect(Object.fromEntries(settings)).toMatchObject({
    'retention.ms': '3600000',
    'message.timestamp.type': 'LogAppendTime',
    'compression.type': 'uncompressed',
  });
});
