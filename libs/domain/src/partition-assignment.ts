export interface GroupMember {
  memberId: string;
  topics: readonly string[];
}

/** memberId → topic → partitions. */
export type Assignment = Record<string, Record<string, number[]>>;

/**
 * Gives partition p of every topic to the same member, so that one dispatcher owns an endpoint's
 * fresh messages and its retries at once. Every member computes the same result from the same input.
 */
export function assignTogether(
  members: readonly GroupMember[],
  partitionsOf: (topic: string) => readonly number[],
): Assignment {
  const sorted = [...members].sort((a, b) => (a.memberId < b.memberId ? -1 : 1));
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

function give(assignment: Assignment, memberId: string, topic: string, partition: number): void {
  const ofMember = (assignment[memberId] ??= {});
  (ofMember[topic] ??= []).push(partition);
}
