import { AssignerProtocol, type Cluster, type PartitionAssigner } from 'kafkajs';
import { createLoop, type Loop } from '../../async/loop.ts';
import type { Logger } from '../../service/logger.ts';
import { type Sharing, TOGETHER, type TopicPartition } from '../record-log.ts';

export interface GroupMember {
  memberId: string;
  /** Names the process of the member in every group. */
  instanceId: string;
  topics: readonly string[];
  /** The partitions that the process has where it shares them `together`, in the order in which it got them. */
  owned: readonly number[];
}

/** memberId → topic → partitions. */
export type Assignment = Record<string, Record<string, number[]>>;

type PartitionsOf = (topic: string) => readonly number[];

/**
 * Assigns every partition to one member. Members are ordered by their processes, so groups of the same
 * processes order them alike. The result depends on nothing but the input.
 */
export function assignPartitions(
  members: readonly GroupMember[],
  partitionsOf: PartitionsOf,
  sharing: Sharing,
): Assignment {
  switch (sharing.kind) {
    case 'together':
    case 'following':
      return assignTogether(members, partitionsOf);
    case 'evenly':
      return assignEvenly(members, partitionsOf, sharing.after);
  }
}

/**
 * One dispatcher owns both the fresh messages and the retries of an endpoint. A member keeps the partitions of its
 * process: everything learned about an endpoint is in the process of its partition. Topics with the same readers are shared out
 * as one.
 */
function assignTogether(members: readonly GroupMember[], partitionsOf: PartitionsOf): Assignment {
  const sorted = [...members].sort(byProcess);
  const assignment = emptyAssignment(sorted);
  for (const { readers, topics } of topicsByReaders(sorted)) {
    const existingIn = topics.map((topic) => [topic, new Set(partitionsOf(topic))] as const);
    const numbers = new Set(existingIn.flatMap(([, existing]) => [...existing]));
    for (const { member, partitions } of shareOut(readers, numbers)) {
      for (const [topic, existing] of existingIn) {
        const own = partitions.filter((partition) => existing.has(partition));
        if (own.length > 0) (assignment[member.memberId] ??= {})[topic] = own;
      }
    }
  }
  return assignment;
}

interface Share {
  member: GroupMember;
  /** The partitions that its process had before come first, in the order in which it got them. */
  partitions: number[];
  /** The number of partitions that it is to have. */
  size: number;
}

/**
 * Shares out partitions so that no member has two more than another one, and as many as possible stay where they are:
 * when a member joins, only its new partitions move; when one leaves, only its old ones.
 *
 * No rule that uses only the names of the members can do that (docs/decisions/0049-partitions-stay.md). So members
 * report their partitions, and two groups of the same processes, which read the reports at slightly different times,
 * must come to the same result. They do, because it makes no difference whether a member reports its partitions from
 * before this assignment or those it has got by it: a member with too many gives up those that it got last, and the free
 * ones are dealt out in turn, in the order of the members. Giving up the last ones also returns its partitions to a
 * process that was away for a moment.
 */
function shareOut(members: readonly GroupMember[], partitions: ReadonlySet<number>): Share[] {
  const free = new Set(partitions);
  const shares = members.map((member): Share => ({ member, partitions: [], size: 0 }));
  for (const share of fewestFirst(shares)) {
    share.partitions = share.member.owned.filter((partition) => free.delete(partition));
  }
  setSizes(shares, partitions.size);
  for (const share of shares) {
    for (const partition of share.partitions.splice(share.size)) free.add(partition);
  }
  dealInTurn(shares, free);
  return shares;
}

/**
 * When all processes start together, none has anything: member n of m gets the partitions n, n + m, n + 2m … Where the
 * number of partitions was just doubled, p and its double are with one process then (docs/partitions.md).
 */
function dealInTurn(shares: readonly Share[], free: ReadonlySet<number>): void {
  let takers = shares.filter(isMissingSome);
  let turn = 0;
  for (const partition of [...free].sort((a, b) => a - b)) {
    takers[turn]?.partitions.push(partition);
    turn += 1;
    if (turn < takers.length) continue;
    takers = takers.filter(isMissingSome);
    turn = 0;
  }
}

const isMissingSome = ({ partitions, size }: Share): boolean => partitions.length < size;

/**
 * A partition that two processes report stays with the one that has fewer: the other one must give up some anyway, and
 * may have lost it while it was frozen.
 */
function fewestFirst(shares: readonly Share[]): Share[] {
  const ownedBy = ({ member }: Share): number => member.owned.length;
  return [...shares].sort((a, b) => ownedBy(a) - ownedBy(b));
}

/** Members that have one more than the least number already keep it, as far as the count allows. */
function setSizes(shares: readonly Share[], count: number): void {
  const least = Math.floor(count / shares.length);
  const isFuller = ({ partitions }: Share): boolean => partitions.length > least;
  const fullerFirst = [...shares.filter(isFuller), ...shares.filter((each) => !isFuller(each))];
  fullerFirst.forEach((share, index) => {
    share.size = index < count % shares.length ? least + 1 : least;
  });
}

/**
 * Of m members, the same one gets the partitions n, n + m, n + 2m … of all topics, counted through: if every topic
 * began with the first member, that member would get the remainder of each of them.
 */
function assignEvenly(
  members: readonly GroupMember[],
  partitionsOf: PartitionsOf,
  after: number,
): Assignment {
  let next = after;
  const sorted = [...members].sort(byProcess);
  const assignment = emptyAssignment(sorted);
  for (const topic of topicsOf(sorted)) {
    const readers = readersOf(sorted, topic);
    for (const partition of partitionsOf(topic)) {
      const owner = readers[next++ % readers.length];
      if (owner) ((assignment[owner.memberId] ??= {})[topic] ??= []).push(partition);
    }
  }
  return assignment;
}

const emptyAssignment = (members: readonly GroupMember[]): Assignment =>
  Object.fromEntries(members.map(({ memberId }) => [memberId, {}]));

const topicsOf = (members: readonly GroupMember[]): string[] =>
  [...new Set(members.flatMap(({ topics }) => topics))].sort();

const readersOf = (members: readonly GroupMember[], topic: string): GroupMember[] =>
  members.filter(({ topics }) => topics.includes(topic));

/** Members of one group read the same topics, but during an upgrade. */
function topicsByReaders(
  members: readonly GroupMember[],
): Iterable<{ readers: GroupMember[]; topics: string[] }> {
  const found = new Map<string, { readers: GroupMember[]; topics: string[] }>();
  for (const topic of topicsOf(members)) {
    const readers = readersOf(members, topic);
    const key = readers.map(({ memberId }) => memberId).join();
    const known = found.get(key);
    if (known) known.topics.push(topic);
    else found.set(key, { readers, topics: [topic] });
  }
  return found.values();
}

/** Members of one process follow each other, ordered by the ids that Kafka gave them. */
function byProcess(a: GroupMember, b: GroupMember): number {
  if (a.instanceId !== b.instanceId) return a.instanceId < b.instanceId ? -1 : 1;
  return a.memberId < b.memberId ? -1 : 1;
}

/**
 * The partitions of this process where it shares them `together`. Its member of that group sets them, and every member
 * of the process reports them.
 */
export interface ProcessShare {
  /** Returns the report that a member sends when it joins, see parseReport. */
  report: () => Buffer;
  /** To be called when a member has got its partitions. */
  joined: (sharing: Sharing, assignment: Readonly<Record<string, readonly number[]>>) => void;
  /** Returns true when these partitions are not among those of the process. */
  isAstray: (partitions: readonly TopicPartition[]) => boolean;
}

/** `instanceId` names this process; the members of a group are ordered by it. */
export function createProcessShare(instanceId: string): ProcessShare {
  /** Null until the first assignment. In the order in which they came. */
  let owned: readonly number[] | null = null;
  return {
    report: () => Buffer.from(`${instanceId} ${(owned ?? []).join()}`),
    joined({ kind }, assignment) {
      if (kind !== 'together') return;
      const own = new Set(Object.values(assignment).flat());
      const kept = (owned ?? []).filter((partition) => own.delete(partition));
      owned = [...kept, ...own];
    },
    isAstray(partitions) {
      if (owned === null) return false;
      const own = new Set(owned);
      return partitions.some(({ partition }) => !own.has(partition));
    },
  };
}

/** Reads the report of a member: `<instanceId> <partition>,<partition>…` */
export function parseReport(
  userData: Buffer | null | undefined,
): Pick<GroupMember, 'instanceId' | 'owned'> {
  const [instanceId = '', owned = ''] = (userData?.toString() ?? '').split(' ');
  return { instanceId, owned: owned === '' ? [] : owned.split(',').map(Number) };
}

/** Longer than a change of both groups takes. */
const STRAY_CHECK_EVERY_MS = 10_000;

interface StrayWatchDeps {
  share: Pick<ProcessShare, 'isAstray'>;
  consumer: () => { isRunning: () => boolean; assigned: () => TopicPartition[] };
  /** Joins the group anew: its leader receives the reports of all members then. */
  replaceConsumer: () => Promise<void>;
  logger: Logger;
}

/**
 * Watches a member that is to have the same partitions as its process has in another group. Both groups come to the
 * same result when they see the same changes; when one of them sees two changes as one, the results may differ.
 */
export function createStrayWatch(deps: StrayWatchDeps): Loop {
  const { share, consumer, replaceConsumer, logger } = deps;
  let wasAstray = false;
  return createLoop({
    name: 'stray partitions',
    everyMs: STRAY_CHECK_EVERY_MS,
    logger,
    async run() {
      const isAstray = consumer().isRunning() && share.isAstray(consumer().assigned());
      const mustMove = isAstray && wasAstray;
      wasAstray = isAstray && !mustMove;
      if (!mustMove) return;
      logger.warn({}, 'the partitions differ from those of the other group, joining anew');
      await replaceConsumer();
    },
  });
}

/** The members of a group must agree on these; version 0 of the consumer protocol. */
const ASSIGNER_NAME = 'PosthornTogether';
export const ASSIGNER_VERSION = 0;

interface PartitionMetadata {
  partitionId: number;
}

interface Broker {
  /** Rejects when there is no such topic. */
  metadata: (
    topics: string[],
  ) => Promise<{ topicMetadata: { topic: string; partitionMetadata: PartitionMetadata[] }[] }>;
}

/** The argument of an assigner; the types of kafkajs lack the pool. */
interface ClusterMetadata {
  /** Returns none for a topic that this client does not read. */
  findTopicPartitionMetadata: (topic: string) => PartitionMetadata[];
  brokerPool: { findConnectedBroker: () => Promise<Broker> };
}

/** Each member sends its `report` when it joins. The member that leads the group assigns. */
export function createCoPartitionAssigner(
  report: () => Buffer,
  sharing: Sharing = TOGETHER,
): PartitionAssigner {
  return ({ cluster }) => ({
    name: ASSIGNER_NAME,
    version: ASSIGNER_VERSION,
    assign: async ({ members, topics }) => {
      const known = members.map(({ memberId, memberMetadata }) =>
        toMember(memberId, memberMetadata, topics),
      );
      const partitions = await partitionsByTopic(cluster as Cluster & ClusterMetadata, known);
      const assignment = assignPartitions(known, (topic) => partitions.get(topic) ?? [], sharing);
      return Object.entries(assignment).map(([memberId, ofMember]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: ASSIGNER_VERSION,
          assignment: ofMember,
          userData: Buffer.alloc(0),
        }),
      }));
    },
    protocol: ({ topics }) => ({
      name: ASSIGNER_NAME,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: ASSIGNER_VERSION,
        topics,
        userData: report(),
      }),
    }),
  });
}

function toMember(memberId: string, metadata: Buffer, topics: string[]): GroupMember {
  const decoded = AssignerProtocol.MemberMetadata.decode(metadata);
  // kafkajs reads bytes that were not sent as null, which its types leave out.
  const userData = decoded?.userData as Buffer | null | undefined;
  return { memberId, topics: decoded?.topics ?? topics, ...parseReport(userData) };
}

async function partitionsByTopic(
  cluster: ClusterMetadata,
  members: readonly GroupMember[],
): Promise<Map<string, number[]>> {
  const partitions = new Map<string, number[]>();
  for (const topic of new Set(members.flatMap((member) => member.topics))) {
    const read = cluster.findTopicPartitionMetadata(topic);
    const found = read.length > 0 ? read : await requestPartitions(cluster, topic);
    partitions.set(
      topic,
      found.map(({ partitionId }) => partitionId),
    );
  }
  return partitions;
}

/**
 * During an upgrade another member may read a topic that this one does not. The request is for this topic
 * alone, because one topic that does not exist would fail the request for all. The answer is not kept:
 * this client must not depend on the topic later.
 */
async function requestPartitions(
  { brokerPool }: ClusterMetadata,
  topic: string,
): Promise<PartitionMetadata[]> {
  try {
    const broker = await brokerPool.findConnectedBroker();
    const { topicMetadata } = await broker.metadata([topic]);
    return topicMetadata.flatMap((each) => each.partitionMetadata);
  } catch (error) {
    // Any other failure fails the join, which is repeated: without an owner nobody would read the topic.
    if (isUnknownTopic(error)) return [];
    throw error;
  }
}

function isUnknownTopic(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION';
}
