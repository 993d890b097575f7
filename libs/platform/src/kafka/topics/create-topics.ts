import type { TopicLayout } from '@posthorn/domain/records/topic-drift.ts';
import { type TopicSpec, wantedSettings } from '@posthorn/domain/records/topics.ts';
import type { Admin, Kafka } from 'kafkajs';
import { createKeepTrying } from '../../async/keep-trying.ts';
import type { Logger } from '../../service/logger.ts';
import { closeAdmin } from '../connection/connect.ts';

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
      topics: missing.map((spec) => ({
        topic: spec.name,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: entriesOf(wantedSettings({ spec, replication })),
      })),
    });
    const topics = missing.map(({ name }) => name);
    await untilLed(admin, topics, logger);
    return topics;
  } finally {
    await closeAdmin(admin);
  }
}

function entriesOf(settings: Record<string, string>): { name: string; value: string }[] {
  return Object.entries(settings).map(([name, value]) => ({ name, value }));
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
