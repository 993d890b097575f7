import { beforeAll, expect, it } from '@jest/globals';
import {
  findSettingDrift,
  findUnpinned,
  planTopicChanges,
} from '@posthorn/domain/records/topic-drift.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { sampleTopicSpec } from '../../../../test/support/samples/sample-topic-spec.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createLogger } from '../service/logger.ts';
import { applyTopicChanges } from './apply-topic-changes.ts';
import { createKafkaClient } from './connect.ts';
import { observeTopics } from './topics.ts';

const env = createNamespace();
const access = { brokers: [env.KAFKA_BROKERS], tls: null, sasl: null };
const logger = createLogger('test', 'silent');
const kafka = createKafkaClient('posthorn-test', access, logger);
const spec = sampleTopicSpec(`${env.TOPIC_PREFIX}foreign`);

/** A topic that somebody else made. */
beforeAll(async () => {
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = [
    { name: 'cleanup.policy', value: 'compact' },
    { name: 'flush.messages', value: '1000' },
  ];
  await admin.createTopics({ topics: [{ topic: spec.name, numPartitions: 1, configEntries }] });
  await admin.disconnect();
});

async function found() {
  const { observed } = await observeTopics(kafka, () => [spec]);
  const [drifts, unpinned] = [findSettingDrift([spec], observed), findUnpinned([spec], observed)];
  return { drifts, unpinned, ...planTopicChanges(drifts, unpinned, { force: true }) };
}

const settingsOf = (drifts: readonly { setting: string }[]) => drifts.map((each) => each.setting);
/** The defaults of Kafka are a week, and time stamps of the producer. */
const DIFFERING = [
  'cleanup.policy',
  'retention.ms',
  'message.timestamp.type',
  'compression.type',
  'segment.ms',
];

it('changes nothing in a dry run', async () => {
  const { changes } = await found();
  await applyTopicChanges(access, changes, { isDryRun: true });
  expect(settingsOf((await found()).drifts)).toEqual(DIFFERING);
});

it('writes what differs, pins what does not, and leaves other settings as they are', async () => {
  const { changes } = await found();
  await applyTopicChanges(access, changes, { isDryRun: false });
  // A broker learns the settings from the controller a moment after that has written them.
  await eventually('the settings of the spec', async () => {
    const { drifts, unpinned } = await found();
    return drifts.length + unpinned.length === 0;
  });
  const admin = kafka.admin();
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: 2, name: spec.name, configNames: ['flush.messages'] }],
  });
  await admin.disconnect();
  expect(resources[0]?.configEntries[0]?.configValue).toBe('1000');
});

it('throws what Kafka refuses, with the reason', async () => {
  const change = { topic: `${spec.name}-missing`, settings: { 'cleanup.policy': 'delete' } };
  await expect(applyTopicChanges(access, [change], { isDryRun: false })).rejects.toThrow(
    /Kafka refused the settings of topics: .*This server does not host this topic-partition/,
  );
});
