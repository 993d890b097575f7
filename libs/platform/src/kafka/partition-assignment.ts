export interface GroupMember {
  memberId: string;
  /** Names the member's process in every group; a version before this rule told none. */
  instanceId?: string;
  topics: readonly string[];
}

/** memberId → topic → partitions. */
export type Assignment = Record<string, Record<string, number[]>>;

/**
 * Gives partition p of every topic to the same member, so that one dispatcher owns an endpoint's
 * fresh messages and its retries at once. Members stand in the order of their processes, so groups
 * made of the same processes agree too. Every member computes the same result from the same input.
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

/** Two members of one process stand beside each other, in the order of what Kafka calls them. */
function byProcess(a: GroupMember, b: GroupMember): number {
  const [left, right] = [a.instanceId ?? a.memberId, b.instanceId ?? b.memberId];
  if (left !== right) return left < right ? -1 : 1;
  return a.memberId < b.memberId ? -1 : 1;
}

function give(assignment: Assignment, memberId: string, topic: string, partition: number): void {
  const ofMember = (assignment[memberId] ??= {});
  (ofMember[topic] ??= []).push(partition);
}
