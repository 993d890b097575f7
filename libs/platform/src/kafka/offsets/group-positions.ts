import type { Admin, Kafka } from 'kafkajs';
import { withTimeout } from '../../async/with-timeout.ts';
import type { TopicPartition } from '../topic-partition.ts';

/** Where the group stands in a partition, as the broker says. */
export interface GroupPosition extends TopicPartition {
  /** The next offset that the group would read; -1 before its first commit. */
  committed: number;
  /** Records from there to the end of the partition. */
  lag: number;
}

export interface GroupPositions {
  /** Rejects when Kafka does not answer within 20 seconds. */
  read: () => Promise<GroupPosition[]>;
  close: () => Promise<void>;
}

const TIMEOUT_MS = 20_000;
/** Nothing is lost with this connection, so a stop does not wait for it. */
const CLOSE_TIMEOUT_MS = 2_000;
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 2 };

/** Reads positions from the broker, because a consumer that stopped fetching does not learn of new records. */
export function createGroupPositions(
  kafka: Kafka,
  group: { groupId: string; topics: readonly string[] },
): GroupPositions {
  let admin: Admin | null = null;
  async function close(): Promise<void> {
    const old = admin;
    admin = null;
    if (old) await withTimeout(old.disconnect(), CLOSE_TIMEOUT_MS).catch(() => undefined);
  }
  return {
    async read() {
      admin ??= kafka.admin({ retry: RETRY });
      try {
        return await withTimeout(readAll(admin, group), TIMEOUT_MS);
      } catch (error) {
        // Its view of who leads which partition may be stale, and it refreshes that only in minutes.
        void close();
        throw error;
      }
    },
    close,
  };
}

async function readAll(
  admin: Admin,
  { groupId, topics }: { groupId: string; topics: readonly string[] },
): Promise<GroupPosition[]> {
  await admin.connect();
  const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
  const positions = committed.map(async ({ topic, partitions }) => {
    const ends = await admin.fetchTopicOffsets(topic);
    return partitions.map(({ partition, offset }) => {
      const end = ends.find((each) => each.partition === partition);
      const from = Math.max(Number(offset), Number(end?.low ?? 0));
      const lag = Math.max(0, Number(end?.high ?? 0) - from);
      return { topic, partition, committed: Number(offset), lag };
    });
  });
  return (await Promise.all(positions)).flat();
}
