import type { GroupState } from '@posthorn/domain/ingest-lag.ts';
import kafkajs, { type Broker, type Cluster, type GroupDescription, type Kafka } from 'kafkajs';
import { withTimeout } from '../../async/pause.ts';
import { createIsAssigned, type TopicPartition } from '../record-log.ts';

/** The position of the group in a partition, as the broker reports it. */
export interface GroupPosition extends TopicPartition {
  /** The next offset that the group would read; -1 before its first commit. */
  committed: number;
  /** Records from there to the end of the partition. */
  lag: number;
  /** The offset after the last record that can be read: nothing behind the begin of an open transaction can. */
  endOffset: number;
}

/** The members of the group, as its coordinator describes them. */
export interface GroupOwners {
  state: GroupState;
  /** Returns true when a member has the partition. */
  isOwned: (partition: TopicPartition) => boolean;
}

export interface GroupPositions {
  /**
   * Reads the positions in these partitions; in all partitions of the group's topics unless given. Rejects when Kafka
   * does not answer within 20 seconds.
   */
  read: (of?: readonly TopicPartition[]) => Promise<GroupPosition[]>;
  /** The same in all partitions of these topics, which must exist. */
  readAll: (topics: readonly string[]) => Promise<GroupPosition[]>;
  /** Reads who has which partitions. */
  readOwners: () => Promise<GroupOwners>;
  /**
   * Returns for these partitions, for all unless given, the offset after the last record written before this time
   * (milliseconds since 1970).
   */
  endsBefore: (
    topic: string,
    beforeMs: number,
    partitions?: readonly number[],
  ) => Promise<ReadonlyMap<number, number>>;
  /** Disconnects. Every request from then on is rejected. */
  close: () => Promise<void>;
}

const TIMEOUT_MS = 20_000;
/** Nothing is lost with this connection, so a stop does not wait for it. */
const CLOSE_TIMEOUT_MS = 2_000;
/** Kafka understands these instead of a time. */
const LATEST = -1;
const EARLIEST = -2;
const READ_COMMITTED = 1;

/**
 * Reads positions from the broker, because a consumer that stopped fetching does not learn of new records. It requests
 * only the partitions that are needed: the admin client of kafkajs requests all of a topic, and compares each with each.
 */
export function createGroupPositions(
  kafka: Kafka,
  { groupId, topics }: { groupId: string; topics: readonly string[] },
): GroupPositions {
  let cluster: Cluster | null = null;
  let requesting: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  async function disconnect(): Promise<void> {
    const old = cluster;
    cluster = null;
    if (!old) return;
    // kafkajs connects again for a request that runs, and leaves that connection open.
    const closed = requesting.catch(() => undefined).then(() => old.disconnect());
    await withTimeout(closed, CLOSE_TIMEOUT_MS).catch(() => undefined);
  }

  async function request<T>(step: (cluster: Cluster) => Promise<T>): Promise<T> {
    if (isClosed) throw new Error('the positions of the group are closed');
    const current = (cluster ??= openCluster(kafka, groupId));
    const response = current.connect().then(() => step(current));
    requesting = response;
    try {
      return await withTimeout(response, TIMEOUT_MS);
    } catch (error) {
      // Its list of the leaders may be stale, and kafkajs refreshes that only in minutes.
      void disconnect();
      throw error;
    }
  }

  return {
    read: (of) =>
      request(async (connected) => {
        const wanted = of ? byTopicOf(of) : null;
        if (wanted?.size === 0) return [];
        return readPositions(connected, groupId, await refresh(connected, topics, wanted));
      }),
    readAll: (of) =>
      request(async (connected) =>
        readPositions(connected, groupId, await refresh(connected, of, null)),
      ),
    readOwners: () => request((connected) => readOwners(connected, groupId)),
    endsBefore: (topic, beforeMs, partitions) =>
      request(async (connected) => {
        const wanted = partitions ? new Map([[topic, partitions]]) : null;
        return endsBefore(connected, await refresh(connected, [topic], wanted), beforeMs);
      }),
    close() {
      isClosed = true;
      return disconnect();
    },
  };
}

/** The response to a DescribeGroups request. */
interface Described {
  groups: GroupDescription[];
}

async function readOwners(cluster: Cluster, groupId: string): Promise<GroupOwners> {
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { groups } = (await coordinator.describeGroups({ groupIds: [groupId] })) as Described;
  const assigned = groups
    .flatMap(({ members }) => members)
    .map(({ memberAssignment: bytes }) => {
      // A member has none until its group has settled.
      const decoded = kafkajs.AssignerProtocol.MemberAssignment.decode(bytes);
      return createIsAssigned(decoded?.assignment ?? {});
    });
  return {
    state: stateOf(groups),
    isOwned: (partition) => assigned.some((isAssigned) => isAssigned(partition)),
  };
}

/** A group without a member is `Empty` or `Dead`; one that nobody has joined yet is `Dead` too. */
function stateOf([group]: readonly GroupDescription[]): GroupState {
  if (!group || group.members.length === 0) return 'empty';
  return group.state === 'Stable' ? 'stable' : 'changing';
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

function byTopicOf(of: readonly TopicPartition[]): Wanted {
  const byTopic = Map.groupBy(of, ({ topic }) => topic);
  return new Map(
    [...byTopic].map(([topic, entries]) => [topic, entries.map(({ partition }) => partition)]),
  );
}

/** Reads who leads the partitions. Returns the wanted ones; all of the topics for null. */
async function refresh(
  cluster: Cluster,
  topics: readonly string[],
  wanted: Wanted | null,
): Promise<Wanted> {
  await cluster.addMultipleTargetTopics([...(wanted?.keys() ?? topics)]);
  await cluster.refreshMetadataIfNecessary();
  if (wanted) return wanted;
  return new Map(
    topics.map((topic) => {
      const found = cluster.findTopicPartitionMetadata(topic);
      return [topic, found.map(({ partitionId }) => partitionId)];
    }),
  );
}

async function readPositions(
  cluster: Cluster,
  groupId: string,
  wanted: Wanted,
): Promise<GroupPosition[]> {
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

/** `wanted` has one topic. */
async function endsBefore(
  cluster: Cluster,
  wanted: Wanted,
  beforeMs: number,
): Promise<ReadonlyMap<number, number>> {
  // A request holds whole milliseconds.
  const [found, highs] = await Promise.all([
    offsetsAt(cluster, wanted, Math.ceil(beforeMs)),
    offsetsAt(cluster, wanted, LATEST),
  ]);
  // A partition without a record from then on has no offset for that time.
  const ends = [...highs].flatMap(([topic, ofTopic]) =>
    [...ofTopic].map(([partition, high]): [number, number] => {
      const end = found.get(topic)?.get(partition) ?? -1;
      return [partition, end >= 0 ? end : high];
    }),
  );
  return new Map(ends);
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

/** The types of kafkajs lack this request. */
interface ListingBroker extends Broker {
  listOffsets: (request: {
    isolationLevel: number;
    topics: { topic: string; partitions: { partition: number; timestamp: number }[] }[];
  }) => Promise<{ responses: Listed[] }>;
}

interface Listed {
  topic: string;
  partitions: { partition: number; offset: string }[];
}

/** Requests from each leader the offsets of its partitions. */
async function offsetsAt(cluster: Cluster, wanted: Wanted, timestamp: number): Promise<Offsets> {
  const led = [...wanted].flatMap(([topic, partitions]) => {
    const metadata = cluster.findTopicPartitionMetadata(topic);
    const leaders = new Map(metadata.map(({ partitionId, leader }) => [partitionId, leader]));
    return partitions.map((partition) => ({ topic, partition, leader: leaders.get(partition) }));
  });
  const byLeader = Map.groupBy(led, ({ leader }) => leader);
  byLeader.delete(undefined);
  const responses = [...byLeader].map(async ([leader, ofLeader]) => {
    const broker = (await cluster.findBroker({ nodeId: String(leader) })) as ListingBroker;
    const topics = [...byTopicOf(ofLeader)].map(([topic, partitions]) => ({
      topic,
      partitions: partitions.map((partition) => ({ partition, timestamp })),
    }));
    return (await broker.listOffsets({ isolationLevel: READ_COMMITTED, topics })).responses;
  });
  return toOffsets((await Promise.all(responses)).flat());
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
