import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assignTogether, type Assignment } from './partition-assignment.ts';

const TOPICS = ['message-created', 'retry-due'];
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

function ownersOf(assignment: Assignment, topic: string, partition: number): string[] {
  return Object.keys(assignment).filter((id) => assignment[id]?.[topic]?.includes(partition));
}

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
