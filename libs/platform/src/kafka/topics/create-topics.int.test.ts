import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findSettingDrift, findUnpinned } from '@posthorn/domain/records/topic-drift.ts';
import { TOPIC_SETTINGS } from '@posthorn/domain/records/topics.ts';
import type { Admin } from 'kafkajs';
import { createNamespace } from '../../../../../test/support/process/namespace.ts';
import { sampleTopicSpec } from '../../../../../test/support/samples/sample-topic-spec.ts';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connection/connect.ts';
import { createTopics } from './create-topics.ts';
import { observeTopics } from './observe-topics.ts';

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
