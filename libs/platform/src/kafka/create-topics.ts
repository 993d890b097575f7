import type { TopicSpec } from '@posthorn/domain/topics.ts';
import type { Kafka } from 'kafkajs';

export interface TopicLayout {
  partitions: number;
  replication: number;
}

/** Makes the topics that are missing and answers their names; leaves those that exist as they are. */
export async function createTopics(
  kafka: Kafka,
  specs: readonly TopicSpec[],
  { partitions, replication }: TopicLayout,
): Promise<string[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ name }) => !existing.has(name));
    await admin.createTopics({
      waitForLeaders: true,
      topics: missing.map(({ name, retentionMs }) => ({
        topic: name,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: [
          { name: 'retention.ms', value: String(retentionMs) },
          { name: 'min.insync.replicas', value: String(Math.max(1, replication - 1)) },
        ],
      })),
    });
    return missing.map(({ name }) => name);
  } finally {
    await admin.disconnect();
  }
}
