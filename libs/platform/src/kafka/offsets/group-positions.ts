import type { Admin, Kafka } from 'kafkajs';
import { withTimeout } from '../../async/with-timeout.ts';
import type { TopicPartition } from '../topic-partition.ts';

/** Where the group stands in a partition, as the broker says. */
export interface GroupPosition extends TopicPartition {
  /** The next offset that the group would read; -1 before its first commit. */
  committed: number;
  /** Records from there to the end of the partition. */
  lag: number;
  /** The offset after the last record of the partition. */
  endOffset: number;
}

export interface GroupPositions {
  /** Rejects when Kafka does not answer within 20 seconds. */
  read: () => Promise<GroupPosition[]>;
  /** Partition → the offset after the last record written before this time (milliseconds since 1970). */
  endsBefore: (topic: string, beforeMs: number) => Promise<ReadonlyMap<number, number>>;
  /** Disconnects. Every question from then on is rejected. */
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
  let asking: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  async function disconnect(): Promise<void> {
    const old = admin;
    admin = null;
    if (!old) return;
    // kafkajs connects again for a question that runs, and leaves that connection open.
    const closed = asking.catch(() => undefined).then(() => old.disconnect());
    await withTimeout(closed, CLOSE_TIMEOUT_MS).catch(() => undefined);
  }
  async function ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    if (isClosed) throw new Error('the positions of the group are read no longer');
    const asked = (admin ??= kafka.admin({ retry: RETRY }));
    const answer = asked.connect().then(() => question(asked));
    asking = answer;
    try {
      return await withTimeout(answer, TIMEOUT_MS);
    } catch (error) {
      // Its view of who leads which partition may be stale, and it refreshes that only in minutes.
      void disconnect();
      throw error;
    }
  }
  return {
    read: () => ask((connected) => readAll(connected, group)),
    endsBefore: (topic, beforeMs) => ask((connected) => endsBefore(connected, topic, beforeMs)),
    close() {
      isClosed = true;
      return disconnect();
    },
  };
}

async function endsBefore(
  admin: Admin,
  topic: string,
  beforeMs: number,
): Promise<ReadonlyMap<number, number>> {
  // A request holds whole milliseconds.
  const ends = await admin.fetchTopicOffsetsByTimestamp(topic, Math.ceil(beforeMs));
  return new Map(ends.map(({ partition, offset }) => [partition, Number(offset)]));
}

async function readAll(
  admin: Admin,
  { groupId, topics }: { groupId: string; topics: readonly string[] },
): Promise<GroupPosition[]> {
  const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
  const positions = committed.map(async ({ topic, partitions }) => {
    const ends = await admin.fetchTopicOffsets(topic);
    return partitions.map(({ partition, offset }) => {
      const end = ends.find((each) => each.partition === partition);
      const from = Math.max(Number(offset), Number(end?.low ?? 0));
      const endOffset = Number(end?.high ?? 0);
      const lag = Math.max(0, endOffset - from);
      return { topic, partition, committed: Number(offset), lag, endOffset };
    });
  });
  return (await Promise.all(positions)).flat();
}
