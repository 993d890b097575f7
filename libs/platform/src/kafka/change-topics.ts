import type { TopicLayout } from '@posthorn/domain/records/topic-drift.ts';
import { type TopicSpec, wantedSettings } from '@posthorn/domain/records/topics.ts';
import type { Admin, Kafka } from 'kafkajs';
import { createKeepTrying } from '../async/keep-trying.ts';
import { StartupError } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { type ExistingTopics, withAdmin } from './connect.ts';

const LEADERS_TIMEOUT_MS = 60_000;

/** Creates the missing topics and returns their names. Does not change existing ones. */
export function createTopics(
  kafka: Kafka,
  specs: readonly TopicSpec[],
  { partitions, replication }: TopicLayout,
  logger: Pick<Logger, 'warn'>,
): Promise<string[]> {
  return withAdmin(kafka, {}, async (admin) => {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ name }) => !existing.has(name));
    await admin.createTopics({
      // kafkajs requests the leaders once, and a broker under load may not know the topic yet. Below,
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
    await untilLed(kafka, { topics, partitions }, logger);
    return topics;
  });
}

function entriesOf(settings: Record<string, string>): { name: string; value: string }[] {
  return Object.entries(settings).map(([name, value]) => ({ name, value }));
}

/**
 * Resolves when Kafka knows this many partitions of these topics, and each one answers. Right after a change a broker may
 * still know the fewer ones of before. Rejects after a minute.
 */
async function untilLed(
  kafka: Kafka,
  { topics, partitions }: { topics: readonly string[]; partitions: number },
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const keepTrying = createKeepTrying({ logger, signal: AbortSignal.timeout(LEADERS_TIMEOUT_MS) });
  // Each time with a client of its own: one keeps for minutes what it has learnt of a topic.
  await keepTrying('read the offsets of topics', () =>
    withAdmin(kafka, {}, async (admin) => {
      for (const topic of topics) {
        const { length } = await admin.fetchTopicOffsets(topic);
        if (length < partitions) {
          throw new Error(`Kafka knows ${length} of the ${partitions} partitions of ${topic}.`);
        }
      }
    }),
  );
}

interface AddPartitionsInput {
  /** The topics to raise, with their present numbers of partitions. */
  topics: ExistingTopics;
  /** How many partitions each of them is to have. */
  partitions: number;
  /** The beginning of the names of the consumer groups that read the topics. */
  groupPrefix: string;
}

/**
 * Raises the topics that have fewer partitions, all in one request, and returns their names. It may be
 * repeated after a failure. Throws StartupError when a topic has more partitions, when the number is
 * no multiple of the present one, or while a group reads the topics.
 */
export async function addPartitions(
  kafka: Kafka,
  { topics, partitions, groupPrefix }: AddPartitionsInput,
  logger: Pick<Logger, 'warn'>,
): Promise<string[]> {
  assertRaisable(topics, partitions);
  const names = [...topics].filter(([, count]) => count < partitions).map(([name]) => name);
  if (names.length === 0) return [];
  return withAdmin(kafka, {}, async (admin) => {
    await assertNotRead(admin, groupPrefix);
    const topicPartitions = names.map((topic) => ({ topic, count: partitions }));
    await admin.createPartitions({ topicPartitions });
    await untilLed(kafka, { topics: names, partitions }, logger);
    return names;
  });
}

/**
 * A key moves from partition p to p, or to p plus a multiple of the old number. Then a number of
 * processes that divides the old number has both in one process.
 */
function assertRaisable(topics: ExistingTopics, partitions: number): void {
  for (const [name, count] of topics) {
    if (count > partitions) {
      throw new StartupError(
        `${name} has ${count} partitions, more than ${partitions}; Kafka cannot remove partitions. Set TOPIC_PARTITIONS to a higher number.`,
      );
    }
    if (partitions % count !== 0) {
      throw new StartupError(
        `${name} has ${count} partitions, and ${partitions} is no multiple of that. Set TOPIC_PARTITIONS to one, such as ${2 * count}.`,
      );
    }
  }
}

/** A consumer learns of new partitions only after minutes, and two of them not at the same time. */
async function assertNotRead(admin: Admin, groupPrefix: string): Promise<void> {
  const { groups } = await admin.listGroups();
  const ids = groups.map(({ groupId }) => groupId).filter((id) => id.startsWith(groupPrefix));
  if (ids.length === 0) return;
  const described = await admin.describeGroups(ids);
  const read = described.groups.filter(({ members }) => members.length > 0);
  if (read.length === 0) return;
  throw new StartupError(
    `The consumer groups ${read.map(({ groupId }) => groupId).join(', ')} have members. Stop all dispatchers and retry services first; docs/partitions.md has the order.`,
  );
}
