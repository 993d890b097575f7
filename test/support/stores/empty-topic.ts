import type { Admin } from 'kafkajs';
import type { Namespace } from '../process/namespace.ts';
import { openKafka } from './open-kafka.ts';

/** Returns how many records a topic of the namespace holds. */
export function countRecords(env: Namespace, name: string): Promise<number> {
  return withAdmin(env, async (admin) =>
    recordsIn(await admin.fetchTopicOffsets(topicOf(env, name))),
  );
}

/** Deletes every record of a topic of the namespace; returns how many there were. */
export function emptyTopic(env: Namespace, name: string): Promise<number> {
  const topic = topicOf(env, name);
  return withAdmin(env, async (admin) => {
    const offsets = await admin.fetchTopicOffsets(topic);
    const partitions = offsets.map(({ partition, high }) => ({ partition, offset: high }));
    await admin.deleteTopicRecords({ topic, partitions });
    return recordsIn(offsets);
  });
}

const topicOf = ({ TOPIC_PREFIX }: Namespace, name: string): string => TOPIC_PREFIX + name;

const recordsIn = (offsets: readonly { high: string; low: string }[]): number =>
  offsets.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);

async function withAdmin<T>(env: Namespace, use: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = openKafka(env).admin();
  await admin.connect();
  try {
    return await use(admin);
  } finally {
    await admin.disconnect();
  }
}
