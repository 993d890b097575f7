import { createLocalAdmin } from '../../tools/local-stack/kafka/local-admin.ts';

const GROUP = 'posthorn.dispatcher';
const TOPIC = 'posthorn.message-created';

/** Returns how many records the partition of message-created with the longest backlog has that are not committed. */
export async function readLargestLag(brokers: string): Promise<number> {
  const admin = createLocalAdmin(brokers);
  await admin.connect();
  try {
    const ends = await admin.fetchTopicOffsets(TOPIC);
    const groups = await admin.fetchOffsets({ groupId: GROUP, topics: [TOPIC] });
    const committed = new Map(
      groups.flatMap(({ partitions }) => partitions.map((each) => [each.partition, each.offset])),
    );
    // -1 before the first commit.
    const lags = ends.map(
      ({ partition, high }) => Number(high) - Math.max(0, Number(committed.get(partition) ?? 0)),
    );
    return Math.max(...lags);
  } finally {
    await admin.disconnect();
  }
}
