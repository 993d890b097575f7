import kafkajs, { type Broker, type Cluster, type Kafka } from 'kafkajs';
import { withTimeout } from '../../async/pause.ts';
import type { TopicPartition } from '../record-log.ts';

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
  /**
   * Of these partitions; of all partitions of the group's topics unless given. Rejects when Kafka does not answer within
   * 20 seconds.
   */
  read: (of?: readonly TopicPartition[]) => Promise<GroupPosition[]>;
  /**
   * Partition → the offset after the last record written before this time (milliseconds since 1970). Of these
   * partitions; of all unless given.
   */
  endsBefore: (
    topic: string,
    beforeMs: number,
    partitions?: readonly number[],
  ) => Promise<ReadonlyMap<number, number>>;
  /** Disconnects. Every question from then on is rejected. */
  close: () => Promise<void>;
}

const TIMEOUT_MS = 20_000;
/** Nothing is lost with this connection, so a stop does not wait for it. */
const CLOSE_TIMEOUT_MS = 2_000;
/** What Kafka understands instead of a time. */
const LATEST = -1;
const EARLIEST = -2;

/**
 * Reads positions from the broker, because a consumer that stopped fetching does not learn of new records. It asks for
 * the partitions that are needed: the admin client of kafkajs asks for all of a topic, and compares each with each.
 */
export function createGroupPositions(
  kafka: Kafka,
  group: { groupId: string; topics: readonly string[] },
): GroupPositions {
  let cluster: Cluster | null = null;
  let asking: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  async function disconnect(): Promise<void> {
    const old = cluster;
    cluster = null;
    if (!old) return;
    // kafkajs connects again for a question that runs, and leaves that connection open.
    const closed = asking.catch(() => undefined).then(() => old.disconnect());
    await withTimeout(closed, CLOSE_TIMEOUT_MS).catch(() => undefined);
  }
  async function ask<T>(question: (cluster: Cluster) => Promise<T>): Promise<T> {
    if (isClosed) throw new Error('the positions of the group are read no longer');
    const asked = (cluster ??= openCluster(kafka, group.groupId));
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
    read: (of) => ask((connected) => readPositions(connected, group, of)),
    endsBefore: (topic, beforeMs, partitions) =>
      ask((connected) => endsBefore(connected, { topic, partitions }, beforeMs)),
    close() {
      isClosed = true;
      return disconnect();
    },
  };
}

/** kafkajs passes a cluster to the assigners of a consumer only. This consumer never connects. */
function openCluster(kafka: Kafka, groupId: string): Cluster {
  const clusters: Cluster[] = [];
  kafka.consumer({
    groupId,
    allowAutoTopicCreation: false,
    partitionAssigners: [
      (given) => {
        clusters.push(given.cluster);
        return kafkajs.PartitionAssigners.roundRobin(given);
      },
    ],
  });
  const [cluster] = clusters;
  if (!cluster) throw new Error('kafkajs has created no cluster');
  return cluster;
}

/** Topic → partitions. */
type Wanted = ReadonlyMap<string, readonly number[]>;
/** Topic → partition → offset. */
type Offsets = ReadonlyMap<string, ReadonlyMap<number, number>>;

async function readPositions(
  cluster: Cluster,
  { groupId, topics }: { groupId: string; topics: readonly string[] },
  of?: readonly TopicPartition[],
): Promise<GroupPosition[]> {
  const wanted = of ? byTopicOf(of) : await allOf(cluster, topics);
  if (wanted.size === 0) return [];
  if (of) await refresh(cluster, [...wanted.keys()]);
  const [committed, lows, highs] = await Promise.all([
    committedIn(cluster, groupId, wanted),
    offsetsAt(cluster, wanted, EARLIEST),
    offsetsAt(cluster, wanted, LATEST),
  ]);
  return [...wanted].flatMap(([topic, partitions]) =>
    partitions.map((partition) => {
      const next = committed.get(topic)?.get(partition) ?? -1;
      const from = Math.max(next, lows.get(topic)?.get(partition) ?? 0);
      const endOffset = highs.get(topic)?.get(partition) ?? 0;
      const lag = Math.max(0, endOffset - from);
      return { topic, partition, committed: next, lag, endOffset };
    }),
  );
}

async function endsBefore(
  cluster: Cluster,
  { topic, partitions }: { topic: string; partitions: readonly number[] | undefined },
  beforeMs: number,
): Promise<ReadonlyMap<number, number>> {
  const wanted = partitions ? new Map([[topic, partitions]]) : await allOf(cluster, [topic]);
  if (partitions) await refresh(cluster, [topic]);
  // A request holds whole milliseconds.
  const [found, highs] = await Promise.all([
    offsetsAt(cluster, wanted, Math.ceil(beforeMs)),
    offsetsAt(cluster, wanted, LATEST),
  ]);
  // A partition without a record from then on has no offset for that time.
  const ends = [...(highs.get(topic) ?? [])].map(([partition, high]): [number, number] => {
    const end = found.get(topic)?.get(partition) ?? -1;
    return [partition, end >= 0 ? end : high];
  });
  return new Map(ends);
}

async function refresh(cluster: Cluster, topics: string[]): Promise<void> {
  await cluster.addMultipleTargetTopics(topics);
  await cluster.refreshMetadataIfNecessary();
}

async function allOf(cluster: Cluster, topics: readonly string[]): Promise<Wanted> {
  await refresh(cluster, [...topics]);
  return new Map(
    topics.map((topic) => {
      const found = cluster.findTopicPartitionMetadata(topic);
      return [topic, found.map(({ partitionId }) => partitionId)];
    }),
  );
}

function byTopicOf(of: readonly TopicPartition[]): Wanted {
  const wanted = new Map<string, number[]>();
  for (const { topic, partition } of of) {
    const known = wanted.get(topic);
    if (known) known.push(partition);
    else wanted.set(topic, [partition]);
  }
  return wanted;
}

async function committedIn(cluster: Cluster, groupId: string, wanted: Wanted): Promise<Offsets> {
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { responses } = await coordinator.offsetFetch({
    groupId,
    topics: [...wanted].map(([topic, partitions]) => ({
      topic,
      partitions: partitions.map((partition) => ({ partition, offset: '' })),
    })),
  });
  return toOffsets(responses);
}

interface AskedOffset {
  partition: number;
  timestamp: number;
}

/** What kafkajs's types leave out. */
interface ListingBroker extends Broker {
  listOffsets: (request: {
    isolationLevel: number;
    topics: { topic: string; partitions: AskedOffset[] }[];
  }) => Promise<{ responses: Listed[] }>;
}

interface Listed {
  topic: string;
  partitions: { partition: number; offset: string }[];
}

const READ_UNCOMMITTED = 0;

/** Asks each leader for its partitions. */
async function offsetsAt(cluster: Cluster, wanted: Wanted, timestamp: number): Promise<Offsets> {
  const byLeader = new Map<number, Map<string, AskedOffset[]>>();
  for (const [topic, partitions] of wanted) {
    const metadata = cluster.findTopicPartitionMetadata(topic);
    const leaders = new Map(metadata.map(({ partitionId, leader }) => [partitionId, leader]));
    for (const partition of partitions) {
      const leader = leaders.get(partition);
      if (leader === undefined) continue;
      const ofLeader = byLeader.get(leader) ?? new Map<string, AskedOffset[]>();
      byLeader.set(leader, ofLeader);
      const asked = ofLeader.get(topic) ?? [];
      ofLeader.set(topic, asked);
      asked.push({ partition, timestamp });
    }
  }
  const answers = [...byLeader].map(async ([leader, ofLeader]) => {
    const broker = (await cluster.findBroker({ nodeId: String(leader) })) as ListingBroker;
    const topics = [...ofLeader].map(([topic, partitions]) => ({ topic, partitions }));
    return (await broker.listOffsets({ isolationLevel: READ_UNCOMMITTED, topics })).responses;
  });
  return toOffsets((await Promise.all(answers)).flat());
}

function toOffsets(listed: readonly Listed[]): Offsets {
  const offsets = new Map<string, Map<number, number>>();
  for (const { topic, partitions } of listed) {
    const ofTopic = offsets.get(topic) ?? new Map<number, number>();
    offsets.set(topic, ofTopic);
    for (const { partition, offset } of partitions) ofTopic.set(partition, Number(offset));
  }
  return offsets;
}
