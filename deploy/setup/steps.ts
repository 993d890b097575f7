import { delayTopicsAmong, topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import {
  assertKafkaReachable,
  createKafkaClient,
  kafkaAccessOf,
  readTopics,
} from '@posthorn/platform/kafka/connect.ts';
import { addPartitions, createTopics } from '@posthorn/platform/kafka/change-topics.ts';
import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connect.ts';
import { createIndexes } from '@posthorn/platform/mongo/create-indexes.ts';
import type { AppliedResult } from '@posthorn/platform/mongo/indexes.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import type { SetupStep } from './run-setup.ts';

const topicSettings = z.object({ ...settings.kafka, ...settings.topics });
const indexSettings = z.object({ ...settings.mongodb, ...settings.retention });

export const CREATE_TOPICS: SetupStep<typeof topicSettings> = {
  name: 'create-topics',
  settings: topicSettings,
  async run(values, logger) {
    const { TOPIC_PREFIX, RETRY_DELAYS, DEFERRAL_DELAYS } = values;
    const access = kafkaAccessOf(values);
    const kafka = createKafkaClient('posthorn-setup', access, logger);
    await assertKafkaReachable(kafka, access.brokers);
    const specs = topicSpecs(topicNames(TOPIC_PREFIX, RETRY_DELAYS, DEFERRAL_DELAYS));
    const layout = { partitions: values.TOPIC_PARTITIONS, replication: values.TOPIC_REPLICATION };
    const created = await createTopics(kafka, specs, layout, logger);
    return `${specs.length} topics, ${created.length} of them created`;
  },
};

export const ADD_PARTITIONS: SetupStep<typeof topicSettings> = {
  name: 'add-partitions',
  // With TOPIC_REPLICATION, which it does not read: on Kubernetes both are in one ConfigMap.
  settings: topicSettings,
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
};

export const CREATE_INDEXES: SetupStep<typeof indexSettings> = {
  name: 'create-indexes',
  settings: indexSettings,
  async run(values) {
    const { MONGODB_URL: url } = values;
    const mongo = await connectMongo(url, 'posthorn-setup', mongoTlsOf(values), {
      isForLongCommands: true,
    });
    try {
      const result = await createIndexes(mongo.db, {
        days: values.RETENTION_DAYS,
        auditDays: values.AUDIT_RETENTION_DAYS,
        isSharded: values.MONGODB_SHARDED,
      });
      return describeIndexes(result);
    } finally {
      await mongo.close();
    }
  },
};

function describeIndexes({ building, dropped }: AppliedResult): string {
  const gone = dropped.length > 0 ? `; no longer needed and dropped: ${dropped.join(', ')}` : '';
  if (building.length === 0) return `collections and indexes exist${gone}`;
  return `the services may start; MongoDB still builds ${building.join(', ')}. Run this again to see that they are done`;
}
