import type { TopicSpec } from '@posthorn/domain/records/topics.ts';
import type { Admin, Kafka } from 'kafkajs';
import { createKeepTrying } from '../../async/keep-trying.ts';
import type { Logger } from '../../service/logger.ts';
import { closeAdmin } from '../connect.ts';

export interface TopicLayout {
  partitions: number;
  replication: number;
}

const LEADERS_TIMEOUT_MS = 60_000;

/** Creates the topics that are missing and returns their names. Leaves those that exist as they are. */
export async function createTopics(
  kafka: Kafka,
  specs: readonly TopicSpec[],
  { partitions, replication }: TopicLayout,
  logger: Pick<Logger, 'warn'>,
): Promise<string[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ name }) => !existing.has(name));
    await admin.createTopics({
      // kafkajs asks for the leaders once, and a broker under load may not know the topic yet. Below,
      // every partition must answer: if only some accepted a first send, its retry would store records twice.
      waitForLeaders: false,
      topics: missing.map(({ name, retentionMs }) => ({
        topic: name,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: [
          { name: 'retention.ms', value: String(retentionMs) },
          { name: 'min.insync.replicas', value: String(Math.max(1, replication - 1)) },
          // By the broker's clock: it refuses records that a producer dates more than an hour ahead,
          // and a service whose clock is wrong could neither publish nor park.
          { name: 'message.timestamp.type', value: 'LogAppendTime' },
          // The broker decompresses what others send: lz4, snappy and zstd would end the consumers.
          { name: 'compression.type', value: 'uncompressed' },
        ],
      })),
    });
    const topics = missing.map(({ name }) => name);
    await untilLed(admin, topics, logger);
    return topics;
  } finally {
    await closeAdmin(admin);
  }
}

/** Resolves when every partition of these topics answers. Rejects after a minute. */
export async function untilLed(
  admin: Pick<Admin, 'fetchTopicOffsets'>,
  topics: readonly string[],
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const keepTrying = createKeepTrying({ logger, signal: AbortSignal.timeout(LEADERS_TIMEOUT_MS) });
  for (const topic of topics) {
    await keepTrying(`read the offsets of ${topic}`, () => admin.fetchTopicOffsets(topic));
  }
}
