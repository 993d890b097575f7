import { beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import kafkajs from 'kafkajs';
import { createLogger } from '../../service/logger.ts';
import { type Sharing, TOGETHER } from '../record-log.ts';
import {
  type Assignment,
  assignPartitions,
  createCoPartitionAssigner,
  createProcessShare,
  createStrayWatch,
  type GroupMember,
  parseReport,
  type ProcessShare,
} from './partition-assignment.ts';

const TOPICS = ['message-created', 'retry-due'];
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

function ownersOf(assignment: Assignment, topic: string, partition: number): string[] {
  return Object.keys(assignment).filter((id) => assignment[id]?.[topic]?.includes(partition));
}

/** A member whose process has no partitions yet. */
const member = (memberId: string, topics: readonly string[] = TOPICS): GroupMember => ({
  memberId,
  instanceId: memberId,
  topics,
  owned: [],
});

const assignTogether = (
  members: readonly GroupMember[],
  partitionsOf: (topic: string) => readonly number[],
): Assignment => assignPartitions(members, partitionsOf, { kind: 'together' });

const groups = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 });

describe('partition assignment', () => {
  test('assigns every partition to exactly one member, and partition p of both topics to the same one', () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: 1, max: 40 }), (ids, partitions) => {
        const members = ids.map((memberId) => member(memberId));
        const assignment = assignTogether(members, () => upTo(partitions));
        for (const partition of upTo(partitions)) {
          const owners = ownersOf(assignment, 'message-created', partition);
          expect(owners).toHaveLength(1);
          expect(ownersOf(assignment, 'retry-due', partition)).toEqual(owners);
        }
      }),
    );
  });

  test('spreads the partitions evenly', () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: 1, max: 40 }), (ids, partitions) => {
        const members = ids.map((memberId) => member(memberId, ['t']));
        const assignment = assignTogether(members, () => upTo(partitions));
        const sizes = ids.map((id) => assignment[id]?.t?.length ?? 0);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('does not depend on the order of the members', () => {
    const orders = groups.chain((ids) =>
      fc.tuple(
        fc.constant(ids),
        fc.shuffledSubarray(ids, { minLength: ids.length, maxLength: ids.length }),
      ),
    );
    fc.assert(
      fc.property(orders, ([listed, shuffled]) => {
        const assign = (ids: string[]) =>
          assignTogether(
            ids.map((memberId) => member(memberId)),
            () => upTo(12),
          );
        expect(assign(shuffled)).toEqual(assign(listed));
      }),
    );
  });

  test('includes members without partitions', () => {
    const members = ['a', 'b', 'c'].map((memberId) => member(memberId, ['t']));
    expect(assignTogether(members, () => [0, 1])).toEqual({ a: { t: [0] }, b: { t: [1] }, c: {} });
  });

  test('assigns a topic only to members that subscribe to it', () => {
    const members = [member('old', ['message-created']), member('new')];
    const assignment = assignTogether(members, () => upTo(4));
    expect(assignment.old).toEqual({ 'message-created': [1, 3] });
    expect(assignment.new).toEqual({ 'message-created': [0, 2], 'retry-due': upTo(4) });
  });

  test('handles topics with different numbers of partitions', () => {
    const members = ['a', 'b'].map((memberId) => member(memberId, ['short', 'long']));
    const assignment = assignTogether(members, (topic) => upTo(topic === 'short' ? 1 : 3));
    expect(assignment).toEqual({ a: { short: [0], long: [0, 2] }, b: { long: [1] } });
  });

  test('assigns a partition to the same process in every group, whatever the ids of its members', () => {
    const processes = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 8 });
    const twoGroups = processes.chain((ids) => {
      const names = fc.uniqueArray(fc.string(), { minLength: ids.length, maxLength: ids.length });
      return fc.tuple(fc.constant(ids), names, names);
    });
    fc.assert(
      fc.property(twoGroups, ([ids, ...groupNames]) => {
        const [first, second] = groupNames.map((names) => {
          const members = ids.map((instanceId, n) => ({
            ...member(names[n] ?? '', ['t']),
            instanceId,
          }));
          const assignment = assignTogether(members, () => upTo(12));
          return members.map(({ memberId }) => assignment[memberId]?.t);
        });
        expect(second).toEqual(first);
      }),
    );
  });
});

describe('partitions that stay together', () => {
  const start = (name: string): GroupMember => ({
    ...member(`member-of-${name}`),
    instanceId: name,
  });

  /** What the processes have once a group of them was assigned `count` partitions of each topic. */
  function assigned(processes: readonly GroupMember[], count: number): GroupMember[] {
    const assignment = assignTogether(processes, () => upTo(count));
    return processes.map((each) => ({
      ...each,
      owned: assignment[each.memberId]?.['retry-due'] ?? [],
    }));
  }

  const ownersBy = (processes: readonly GroupMember[]): Map<number, string> =>
    new Map(
      processes.flatMap(({ instanceId, owned }) => owned.map((p) => [p, instanceId] as const)),
    );
  const movedBetween = (
    before: readonly GroupMember[],
    after: readonly GroupMember[],
  ): number[] => {
    const owners = ownersBy(after);
    return [...ownersBy(before)].filter(([p, name]) => owners.get(p) !== name).map(([p]) => p);
  };

  const counts = fc.integer({ min: 1, max: 60 });
  /** Processes that joined and left one after the other; at least one is there at the end. */
  const histories = fc.record({
    count: counts,
    first: fc.uuid(),
    changes: fc.array(fc.oneof(fc.uuid(), fc.nat()), { maxLength: 12 }),
  });

  function grown({
    count,
    first,
    changes,
  }: {
    count: number;
    first: string;
    changes: (string | number)[];
  }): GroupMember[] {
    let processes = assigned([start(first)], count);
    for (const change of changes) {
      if (typeof change === 'string') processes = assigned([...processes, start(change)], count);
      else if (processes.length > 1) {
        const leaving = change % processes.length;
        processes = assigned(
          processes.filter((_, n) => n !== leaving),
          count,
        );
      }
    }
    return processes;
  }

  test('have one owner each, the same in every topic, and are spread evenly, whatever members report', () => {
    const reports = fc.uniqueArray(fc.record({ name: fc.uuid(), owned: fc.array(fc.nat(70)) }), {
      selector: ({ name }) => name,
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(reports, counts, (reported, count) => {
        const members = reported.map(({ name, owned }) => ({ ...start(name), owned }));
        const assignment = assignTogether(members, () => upTo(count));
        const sizes = members.map(
          ({ memberId }) => assignment[memberId]?.['retry-due']?.length ?? 0,
        );
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        for (const partition of upTo(count)) {
          const owners = ownersOf(assignment, 'message-created', partition);
          expect(owners).toHaveLength(1);
          expect(ownersOf(assignment, 'retry-due', partition)).toEqual(owners);
        }
      }),
    );
  });

  test('move to a process that joins, and no other ones move', () => {
    fc.assert(
      fc.property(histories, fc.uuid(), (history, name) => {
        const before = grown(history);
        const after = assigned([...before, start(name)], history.count);
        const gained = after.at(-1)?.owned ?? [];
        expect(movedBetween(before, after).sort()).toEqual([...gained].sort());
        expect(gained).toHaveLength(Math.floor(history.count / after.length));
      }),
    );
  });

  test('move from a process that leaves, and no other ones move', () => {
    fc.assert(
      fc.property(histories, fc.nat(), (history, index) => {
        const before = grown(history);
        fc.pre(before.length > 1);
        const leaving = before[index % before.length];
        const after = assigned(
          before.filter((each) => each !== leaving),
          history.count,
        );
        expect(movedBetween(before, after).sort()).toEqual([...(leaving?.owned ?? [])].sort());
      }),
    );
  });

  test('come back to a process that was restarted, under whatever name', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 5 }),
        fc.nat(),
        fc.uuid(),
        (first, joined, index, name) => {
          const count = joined.length * (joined.length + 1) * 2;
          const before = grown({ count, first, changes: joined });
          const restarted = index % before.length;
          const others = assigned(
            before.filter((_, n) => n !== restarted),
            count,
          );
          const after = assigned([...others, start(name)], count);
          const sorted = (owned: readonly number[] = []): number[] => [...owned].sort();
          expect(sorted(after.at(-1)?.owned)).toEqual(sorted(before[restarted]?.owned));
        },
      ),
    );
  });

  test('are the same in two groups, of which one is asked when some members have theirs already', () => {
    const changes = fc.record({
      history: histories,
      joining: fc.uniqueArray(fc.uuid(), { maxLength: 3 }),
      leaving: fc.nat(2),
      isTold: fc.infiniteStream(fc.boolean()),
    });
    fc.assert(
      fc.property(changes, ({ history, joining, leaving, isTold }) => {
        const before = grown(history);
        const staying = before.slice(Math.min(leaving, before.length - 1));
        const members = [...staying, ...joining.map(start)];
        const first = assigned(members, history.count);
        const mixed = first.map((each, n) =>
          (isTold.next().value as boolean) ? each : { ...each, owned: members[n]?.owned ?? [] },
        );
        expect(ownersBy(assigned(mixed, history.count))).toEqual(ownersBy(first));
      }),
    );
  });

  test('are dealt in turn to processes that start together, p and p + 12 of 24 to the same one', () => {
    const processes = assigned(['a', 'b', 'c'].map(start), 24);
    const owners = ownersBy(processes);
    for (const partition of upTo(12))
      expect(owners.get(partition + 12)).toBe(owners.get(partition));
  });
});

describe('partitions that are shared evenly', () => {
  const members = (count: number, topics: readonly string[]): GroupMember[] =>
    upTo(count).map((n) => ({ ...member(`m${n}`, topics), instanceId: `process-${n}` }));
  const countOf = (assignment: Assignment, memberId: string): number =>
    Object.values(assignment[memberId] ?? {}).reduce((sum, each) => sum + each.length, 0);
  const skewOf = (counts: readonly number[]): number => Math.max(...counts) - Math.min(...counts);

  /** The number of partitions of each topic, for each of several groups. */
  const layouts = fc.array(
    fc.array(fc.integer({ min: 1, max: 24 }), { minLength: 1, maxLength: 8 }),
    { minLength: 1, maxLength: 4 },
  );

  /** What groups of the same processes get, one after the other. */
  function assignAll(count: number, layout: readonly (readonly number[])[]): Assignment[] {
    let after = 0;
    return layout.map((sizes) => {
      const topics = sizes.map((_size, n) => `t${n}`);
      const sharing: Sharing = { kind: 'evenly', after };
      after += sizes.reduce((a, b) => a + b, 0);
      const partitionsOf = (topic: string) => upTo(sizes[Number(topic.slice(1))] ?? 0);
      return assignPartitions(members(count, topics), partitionsOf, sharing);
    });
  }

  test('are at most one more for a member than for another one, over all topics of all groups', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), layouts, (count, layout) => {
        const assigned = assignAll(count, layout);
        const ids = members(count, []).map(({ memberId }) => memberId);
        const totals = ids.map((id) => assigned.reduce((sum, each) => sum + countOf(each, id), 0));
        expect(skewOf(totals)).toBeLessThanOrEqual(1);
        for (const each of assigned) {
          expect(skewOf(ids.map((id) => countOf(each, id)))).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  test('have one owner each, whatever topics the members read', () => {
    const readers = fc.array(fc.subarray(['a', 'b', 'c'], { minLength: 1 }), { minLength: 1 });
    fc.assert(
      fc.property(readers, fc.nat(40), (topicsOf, after) => {
        const mixed = topicsOf.map((topics, n) => member(`m${n}`, topics));
        const sharing: Sharing = { kind: 'evenly', after };
        const assignment = assignPartitions(mixed, () => upTo(5), sharing);
        for (const topic of new Set(topicsOf.flat())) {
          for (const partition of upTo(5)) {
            const [owner, ...others] = ownersOf(assignment, topic, partition);
            expect(others).toEqual([]);
            expect(mixed.find(({ memberId }) => memberId === owner)?.topics).toContain(topic);
          }
        }
      }),
    );
  });

  test.each(upTo(12).map((n) => n + 1))(
    'of the retry service are even with the default topics and %d members',
    (count) => {
      // delivery-failed; five topics of delays up to a minute; nine of longer ones; operator-events.
      const assigned = assignAll(count, [
        [12],
        Array<number>(5).fill(12),
        Array<number>(9).fill(12),
        [12],
      ]);
      const totals = members(count, []).map(({ memberId }) =>
        assigned.reduce((sum, each) => sum + countOf(each, memberId), 0),
      );
      expect(new Set(totals).size).toBe((16 * 12) % count === 0 ? 1 : 2);
      expect(skewOf(totals)).toBeLessThanOrEqual(1);
    },
  );
});

describe('process share', () => {
  const FOLLOWING: Sharing = { kind: 'following' };
  const EVENLY: Sharing = { kind: 'evenly', after: 0 };

  let share: ProcessShare;

  beforeEach(() => {
    share = createProcessShare('p');
  });

  const reported = (): unknown => parseReport(share.report());

  describe('a process', () => {
    test('reports its partitions in the group that shares together, in the order in which it got them', () => {
      expect(reported()).toEqual({ instanceId: 'p', owned: [] });
      share.joined(TOGETHER, { fresh: [5, 7], retries: [5, 7] });
      share.joined(TOGETHER, { fresh: [2, 7], retries: [2, 7] });
      share.joined(FOLLOWING, { slow: [5] });
      share.joined(EVENLY, { parked: [1] });
      expect(reported()).toEqual({ instanceId: 'p', owned: [7, 2] });
    });
  });

  describe('a member that is to follow another group', () => {
    let assigned: number[];
    let isRunning: boolean;
    let replaced: number;

    const watch = () =>
      createStrayWatch({
        share,
        consumer: () => ({
          isRunning: () => isRunning,
          assigned: () => assigned.map((partition) => ({ topic: 'slow', partition })),
        }),
        replaceConsumer: () => Promise.resolve(void (replaced += 1)),
        logger: createLogger('test', 'silent'),
      });

    beforeEach(() => {
      [assigned, isRunning, replaced] = [[1, 3], true, 0];
    });

    test('joins anew when its partitions still differ at the second check', async () => {
      const { tick } = watch();
      share.joined(TOGETHER, { fresh: [1, 2] });
      await tick();
      expect(replaced).toBe(0);
      await tick();
      expect(replaced).toBe(1);
    });

    test('stays while its partitions are those of the process, or become so', async () => {
      const { tick } = watch();
      await tick();
      share.joined(TOGETHER, { fresh: [1, 2] });
      await tick();
      share.joined(TOGETHER, { fresh: [3, 1] });
      await tick();
      await tick();
      expect(replaced).toBe(0);
    });

    test('stays while it is no member', async () => {
      const { tick } = watch();
      share.joined(TOGETHER, { fresh: [1, 2] });
      isRunning = false;
      await tick();
      await tick();
      expect(replaced).toBe(0);
    });
  });
});

type AssignerConfig = Parameters<ReturnType<typeof createCoPartitionAssigner>>[0];

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
const EXISTING = ['retry.5s', 'retry.1m'];
const TWO_PARTITIONS = [{ partitionId: 0 }, { partitionId: 1 }];

/** What Kafka answers for a topic that exists; every other one is unknown to it. */
function askBroker(topics: string[]) {
  if (topics.every((topic) => EXISTING.includes(topic))) {
    return Promise.resolve({
      topicMetadata: topics.map((topic) => ({ topic, partitionMetadata: TWO_PARTITIONS })),
    });
  }
  return Promise.reject(
    Object.assign(new Error('unknown topic'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' }),
  );
}

/** The assignment by a leader that reads `retry.5s` only, to itself and to a newer process. */
async function assignmentOf(
  newTopics: string[],
  metadata = askBroker,
): Promise<Record<string, unknown>> {
  const cluster = {
    findTopicPartitionMetadata: (topic: string) => (topic === 'retry.5s' ? TWO_PARTITIONS : []),
    brokerPool: { findConnectedBroker: () => Promise.resolve({ metadata }) },
  };
  // Only these members of what kafkajs passes to an assigner are used.
  const assigner = createCoPartitionAssigner(() => Buffer.from('old'))({
    cluster,
  } as unknown as AssignerConfig);
  const members = [
    { memberId: 'old', topics: ['retry.5s'] },
    { memberId: 'new', topics: ['retry.5s', ...newTopics] },
  ].map(({ memberId, topics }) => ({
    memberId,
    memberMetadata: MemberMetadata.encode({ version: 0, topics, userData: Buffer.from(memberId) }),
  }));
  const result = await assigner.assign({ members, topics: ['retry.5s'] });
  return Object.fromEntries(
    result.map(({ memberId, memberAssignment }) => [
      memberId,
      MemberAssignment.decode(memberAssignment)?.assignment,
    ]),
  );
}

describe('a group whose leader does not read a topic', () => {
  test('assigns it to the members that do', async () => {
    expect(await assignmentOf(['retry.1m'])).toEqual({
      new: { 'retry.5s': [0], 'retry.1m': [0, 1] },
      old: { 'retry.5s': [1] },
    });
  });

  test('assigns the existing topics when another one does not exist', async () => {
    expect(await assignmentOf(['retry.9h', 'retry.1m'])).toEqual({
      new: { 'retry.5s': [0], 'retry.1m': [0, 1] },
      old: { 'retry.5s': [1] },
    });
  });

  test('is not assigned while Kafka does not answer: the join is repeated', async () => {
    const away = (): Promise<never> => Promise.reject(new Error('connection closed'));
    await expect(assignmentOf(['retry.1m'], away)).rejects.toThrow('connection closed');
  });
});
