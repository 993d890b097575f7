import {
  findLayoutDrift,
  findSettingDrift,
  findUnpinned,
  type Drift,
  type Unpinned,
} from '@posthorn/domain/records/topic-drift.ts';
import { topicNames, topicSpecsAmong } from '@posthorn/domain/records/topics.ts';
import { kafkaAccessOf, type KafkaAccess } from '@posthorn/platform/kafka/connection/access.ts';
import {
  assertKafkaReachable,
  createKafkaClient,
} from '@posthorn/platform/kafka/connection/connect.ts';
import { observeTopics } from '@posthorn/platform/kafka/topics/observe-topics.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import { z } from 'zod';

export const topicsConfig = z.object({ ...settings.kafka, ...settings.topics });

export interface Examination {
  access: KafkaAccess;
  topics: number;
  /** Topics that the settings ask for and Kafka does not have. */
  missing: string[];
  drifts: Drift[];
  unpinned: Unpinned[];
}

/** Compares the topics with their contract. Throws if Kafka does not respond, or does not show their settings. */
export async function examineTopics(config: z.infer<typeof topicsConfig>): Promise<Examination> {
  const { TOPIC_PREFIX: prefix, TOPIC_PARTITIONS: partitions } = config;
  const access = kafkaAccessOf(config);
  const kafka = createKafkaClient('posthorn-admin', access, createLogger('admin', 'silent'));
  await assertKafkaReachable(kafka, access.brokers);
  const names = topicNames(prefix, config.RETRY_DELAYS, config.DEFERRAL_DELAYS);
  const { specs, existing, observed, unreadable } = await observeTopics(kafka, (found) =>
    topicSpecsAmong(prefix, names, found),
  );
  if (unreadable !== null) {
    throw new Error(`The settings of the topics cannot be read: ${unreadable}`);
  }
  const layout = { partitions, replication: config.TOPIC_REPLICATION };
  return {
    access,
    topics: observed.length,
    missing: specs.map(({ name }) => name).filter((name) => !existing.has(name)),
    drifts: [...findSettingDrift(specs, observed), ...findLayoutDrift(names, observed, layout)],
    unpinned: findUnpinned(specs, observed),
  };
}
