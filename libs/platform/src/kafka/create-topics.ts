import type { TopicSpec } from '@posthorn/domain/records/topics.ts';
import type { Kafka } from 'kafkajs';
import { keepTrying } from '../async/keep-trying.ts';

export interface TopicLayout {
  partitions: number;
  replication: number;
}

const LEADERS_TIMEOUT_MS = 60_000;

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
      // kafkajs asks for the leaders once, and a broker under load may not know the topic yet. Below
      // every partition answers: where some take a first send and some not, it would be stored twice.
      waitForLeaders: false,
      topics: missing.map(({ name, retentionMs }) => ({
        topic: name,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: [
          { name: 'retention.ms', value: String(retentionMs) },
          { name: 'min.insync.replicas', value: String(Math.max(1, replication - 1)) },
          // By the broker's clock: it refuses what a producer dates more than an hour ahead of it,
          // so that a service whose clock is wrong could neither publish nor park.
          { name: 'message.timestamp.type', value: 'LogAppendTime' },
          // The broker unpacks what others compress; lz4, snappy and zstd would end our consumers.
          { name: 'compression.type', value: 'uncompressed' },
        ],
      })),
    });
    const topics = missing.map(({ name }) => name);
    // Nothing asked for would be asked for as everything.
    if (topics.length === 0) return [];
    const signal = AbortSignal.timeout(LEADERS_TIMEOUT_MS);
    for (const topic of topics) await keepTrying(() => admin.fetchTopicOffsets(topic), { signal });
    return topics;
  } finally {
    await admin.disconnect();
  }
}
