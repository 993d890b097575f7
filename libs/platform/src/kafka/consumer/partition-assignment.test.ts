import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Sharing } from '../record-log.ts';
import { assignPartitions, type Assignment, type GroupMember } from './partition-assignment.ts';

const TOPICS = ['message-created', 'retry-due'];
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

function ownersOf(assignment: Assignment, topic: string, partition: number): string[] {
  return Object.keys(assignment).filter((id) => assignment[id]?.[topic]?.includes(partition));
}

const assignTogether = (
  members: readonly GroupMember[],
  partitionsOf: (topic: string) => readonly number[],
): Assignment => assignPartitions(members, partitionsOf, { kind: 'together' });

const groups = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 });

describe('partition assignment', () => {
  test('assigns every partition to exactly one member, and partition p of both topics to the same one', () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: 1, max: 40 }), (ids, partitions) => {
        const members = ids.map((memberId) => ({ memberId, topics: TOPICS }));
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
        const members = ids.map((memberId) => ({ memberId, topics: ['t'] }));
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
            ids.map((memberId) => ({ memberId, topics: TOPICS })),
            () => upTo(12),
          );
        expect(assign(shuffled)).toEqual(assign(listed));
      }),
    );
  });

  test('includes members that get nothing', () => {
    const members = ['a', 'b', 'c'].map((memberId) => ({ memberId, topics: ['t'] }));
    expect(assignTogether(members, () => [0, 1])).toEqual({ a: { t: [0] }, b: { t: [1] }, c: {} });
  });

  test('assigns a topic only to members that subscribe to it', () => {
    const members = [
      { memberId: 'old', topics: ['message-created'] },
      { memberId: 'new', topics: TOPICS },
    ];
    const assignment = assignTogether(members, () => upTo(4));
    expect(assignment.old).toEqual({ 'message-created': [1, 3] });
    expect(assignment.new).toEqual({ 'message-created': [0, 2], 'retry-due': upTo(4) });
  });

  test('handles topics with different numbers of partitions', () => {
    const members = ['a', 'b'].map((memberId) => ({ memberId, topics: ['short', 'long'] }));
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
            memberId: names[n] ?? '',
            instanceId,
            topics: ['t'],
          }));
          const assignment = assignTogether(members, () => upTo(12));
          return members.map(({ memberId }) => assignment[memberId]?.t);
        });
        expect(second).toEqual(first);
      }),
    );
  });

  test('orders a member that names no process by its id', () => {
    const members = [
      { memberId: 'm-1', instanceId: 'z', topics: ['t'] },
      { memberId: 'm-2', topics: ['t'] },
      { memberId: 'm-3', instanceId: 'a', topics: ['t'] },
    ];
    expect(assignTogether(members, () => upTo(3))).toEqual({
      'm-3': { t: [0] },
      'm-2': { t: [1] },
      'm-1': { t: [2] },
    });
  });
});

describe('partitions that are shared evenly', () => {
  const members = (count: number, topics: readonly string[]): GroupMember[] =>
    upTo(count).map((n) => ({ memberId: `m${n}`, instanceId: `process-${n}`, topics }));
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
        const mixed = topicsOf.map((topics, n) => ({ memberId: `m${n}`, topics }));
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
