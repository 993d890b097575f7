export interface GroupMember {
  memberId: string;
  /** Names the process of the member in every group. Missing in old versions. */
  instanceId?: string;
  topics: readonly string[];
}

/** memberId → topic → partitions. */
export type Assignment = Record<string, Record<string, number[]>>;

/**
 * Assigns partition p of every topic to the same member, so that one dispatcher owns both the fresh
 * messages and the retries of an endpoint. Members are ordered by their processes, so groups of the
 * same processes get the same assignment. The result depends on nothing but the input.
 */
export function assignTogether(
  members: readonly GroupMember[],
  partitionsOf: (topic: string) => readonly number[],
): Assignment {
  const sorted = [...members].sort(byProcess);
  const assignment: Assignment = Object.fromEntries(sorted.map((m) => [m.memberId, {}]));
  const topics = new Set(sorted.flatMap((member) => member.topics));
  for (const topic of topics) {
    const takers = sorted.filter((member) => member.topics.includes(topic));
    for (const partition of partitionsOf(topic)) {
      const owner = takers[partition % takers.length];
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
