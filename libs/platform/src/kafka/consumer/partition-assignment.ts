import type { Sharing } from '../record-log.ts';

export interface GroupMember {
  memberId: string;
  /** Names the process of the member in every group. Missing in old versions. */
  instanceId?: string;
  topics: readonly string[];
  /**
   * The partitions that the process has where it shares them `together`, in the order in which it got them. Missing in
   * earlier versions, and where partitions are shared evenly.
   */
  held?: readonly number[];
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
 * One dispatcher owns both the fresh messages and the retries of an endpoint. A member keeps what its process has:
 * everything learned about an endpoint is in the process of its partition. Topics with the same readers are shared out
 * as one.
 */
function assignTogether(members: readonly GroupMember[], partitionsOf: PartitionsOf): Assignment {
  // Leaders of an earlier version know this rule only, and may lead one of two groups of the same processes.
  if (members.some(({ held }) => held === undefined)) {
    return assignInTurn(members, partitionsOf, (_topic, partition) => partition);
  }
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
  /** Those that its process had before come first, in the order in which it got them. */
  partitions: number[];
  /** How many it is to have. */
  size: number;
}

/**
 * Shares out partitions so that no member has two more than another one, and as many as possible stay where they are:
 * when a member joins, only what it gets moves; when one leaves, only what it had.
 *
 * No rule that looks at the names of the members alone can do that (docs/decisions/0049-partitions-stay.md). So members
 * report what they have, and two groups of the same processes, which are asked at slightly different times, must come
 * to the same result. They do, because it makes no difference whether a member reports what it had before this
 * assignment or what it has got by it: whoever has too many gives up those that it got last, and what is free is dealt
 * out in turn, in the order of the members. To give up what came last also returns its partitions to a process that was
 * away for a moment.
 */
function shareOut(members: readonly GroupMember[], partitions: ReadonlySet<number>): Share[] {
  const free = new Set(partitions);
  const shares = members.map((member): Share => ({ member, partitions: [], size: 0 }));
  for (const share of byHeld(shares)) {
    share.partitions = (share.member.held ?? []).filter((partition) => free.delete(partition));
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
 * may have lost it while it was suspended.
 */
function byHeld(shares: readonly Share[]): Share[] {
  const heldBy = ({ member }: Share): number => member.held?.length ?? 0;
  return [...shares].sort((a, b) => heldBy(a) - heldBy(b));
}

/** One more than the others is for members that have so many already, as far as there are such. */
function setSizes(shares: readonly Share[], count: number): void {
  const least = Math.floor(count / shares.length);
  const isFuller = ({ partitions }: Share): boolean => partitions.length > least;
  const fullerFirst = [...shares.filter(isFuller), ...shares.filter((each) => !isFuller(each))];
  fullerFirst.forEach((share, index) => {
    share.size = index < count % shares.length ? least + 1 : least;
  });
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
  return assignInTurn(members, partitionsOf, () => next++);
}

/** `turnOf` numbers the partitions. Of m members, the same one gets the partitions n, n + m, n + 2m … */
function assignInTurn(
  members: readonly GroupMember[],
  partitionsOf: PartitionsOf,
  turnOf: (topic: string, partition: number) => number,
): Assignment {
  const sorted = [...members].sort(byProcess);
  const assignment = emptyAssignment(sorted);
  for (const topic of topicsOf(sorted)) {
    const readers = readersOf(sorted, topic);
    for (const partition of partitionsOf(topic)) {
      const owner = readers[turnOf(topic, partition) % readers.length];
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
  const [left, right] = [a.instanceId ?? a.memberId, b.instanceId ?? b.memberId];
  if (left !== right) return left < right ? -1 : 1;
  return a.memberId < b.memberId ? -1 : 1;
}

/** What a member sends with its join. */
type MemberReport = Pick<GroupMember, 'instanceId' | 'held'>;

/** Leaders of an earlier version take all of it for the name of the process, and order the members by it. */
export function encodeReport(instanceId: string, held: readonly number[] | null): Buffer {
  return Buffer.from(held ? `${instanceId} ${held.join()}` : instanceId);
}

export function decodeReport(userData: Buffer | string | null | undefined): MemberReport {
  const [instanceId = '', held] = (userData?.toString() ?? '').split(' ');
  const numbers = held === '' ? [] : held?.split(',').map(Number);
  return { ...(instanceId && { instanceId }), ...(numbers && { held: numbers }) };
}
