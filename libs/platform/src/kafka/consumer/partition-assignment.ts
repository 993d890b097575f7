import type { Sharing } from '../record-log.ts';

export interface GroupMember {
  memberId: string;
  /** Names the process of the member in every group. Missing in old versions. */
  instanceId?: string;
  topics: readonly string[];
}

/** memberId → topic → partitions. */
export type Assignment = Record<string, Record<string, number[]>>;

type PartitionsOf = (topic: string) => readonly number[];

/**
 * Gives every partition to one member. Members are ordered by their processes, so groups of the same
 * processes order them alike. The result depends on nothing but the input.
 */
export function assignPartitions(
  members: readonly GroupMember[],
  partitionsOf: PartitionsOf,
  sharing: Sharing,
): Assignment {
  switch (sharing.kind) {
    case 'together':
      return assignTogether(members, partitionsOf);
    case 'evenly':
      return assignEvenly(members, partitionsOf, sharing.after);
  }
}

/** One dispatcher owns both the fresh messages and the retries of an endpoint. */
function assignTogether(members: readonly GroupMember[], partitionsOf: PartitionsOf): Assignment {
  return assign(members, partitionsOf, (_topic, partition) => partition);
}

/**
 * The partitions of each topic are dealt out from the member after the one that got the last partition of the topic
 * before. If every topic began with the first member, that member would get the remainder of each of them.
 */
function assignEvenly(
  members: readonly GroupMember[],
  partitionsOf: PartitionsOf,
  after: number,
): Assignment {
  let next = after;
  return assign(members, partitionsOf, () => next++);
}

/** `turnOf` numbers the partitions. Of m members, the same one gets the partitions n, n + m, n + 2m … */
function assign(
  members: readonly GroupMember[],
  partitionsOf: PartitionsOf,
  turnOf: (topic: string, partition: number) => number,
): Assignment {
  const sorted = [...members].sort(byProcess);
  const assignment: Assignment = Object.fromEntries(sorted.map((m) => [m.memberId, {}]));
  const topics = new Set(sorted.flatMap((member) => member.topics));
  for (const topic of [...topics].sort()) {
    const takers = sorted.filter((member) => member.topics.includes(topic));
    for (const partition of partitionsOf(topic)) {
      const owner = takers[turnOf(topic, partition) % takers.length];
      if (owner) give(assignment, owner.memberId, topic, partition);
    }
  }
  return assignment;
}

/** Members of one process follow each other, ordered by the ids that Kafka gave them. */
function byProcess(a: GroupMember, b: GroupMember): number {
  const [left, right] = [a.instanceId ?? a.memberId, b.instanceId ?? b.memberId];
  if (left !== right) return left < right ? -1 : 1;
  return a.memberId < b.memberId ? -1 : 1;
}

function give(assignment: Assignment, memberId: string, topic: string, partition: number): void {
  const ofMember = (assignment[memberId] ??= {});
  (ofMember[topic] ??= []).push(partition);
}
