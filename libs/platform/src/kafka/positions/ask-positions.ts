import type { Admin, Kafka } from 'kafkajs';
import { within } from '../../async/with-timeout.ts';

/** Where the group stands in a partition, as the broker says. */
export interface Position {
  topic: string;
  partition: number;
  /** The next offset that the group would read; -1 before its first commit. */
  committed: number;
  /** Records from there to the end of the partition. */
  lag: number;
}

export interface PositionSource {
  /** Rejects when Kafka does not answer within 20 seconds. */
  ask: () => Promise<Position[]>;
  close: () => Promise<void>;
}

const TIMEOUT_MS = 20_000;
/** Nothing is lost with this connection, so a stop does not wait for it. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Asks the broker, since a consumer that stopped fetching does not learn of new records. */
export function createPositionSource(
  kafka: Kafka,
  group: { groupId: string; topics: readonly string[] },
): PositionSource {
  let admin: Admin | null = null;
  async function close(): Promise<void> {
    const old = admin;
    admin = null;
    if (old) await within(old.disconnect(), CLOSE_TIMEOUT_MS).catch(() => undefined);
  }
  return {
    async ask() {
      admin ??= kafka.admin({ retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 2 } });
      try {
        return await within(askAll(admin, group), TIMEOUT_MS);
      } catch (error) {
        // Its view of who leads which partition may be stale, and it refreshes that only in minutes.
        void close();
        throw error;
      }
    },
    close,
  };
}

async function askAll(
  admin: Admin,
  { groupId, topics }: { groupId: string; topics: readonly string[] },
): Promise<Position[]> {
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
