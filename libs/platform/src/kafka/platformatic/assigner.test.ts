import { describe, expect, test } from '@jest/globals';
import type { ClusterMetadata, ExtendedGroupProtocolSubscription } from '@platformatic/kafka';
import kafkajs from 'kafkajs';
import { createCoPartitionAssigner } from '../kafkajs/co-partition-assigner.ts';
import type { Sharing } from '../record-log.ts';
import { createAssigner } from './assigner.ts';

type AssignerConfig = Parameters<ReturnType<typeof createCoPartitionAssigner>>[0];

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
const PARTITIONS: Record<string, number> = { fresh: 12, retries: 12, deferred: 4 };

/** memberId → topics. */
const MEMBERS: Record<string, string[]> = {
  m1: ['fresh', 'retries'],
  m2: ['fresh', 'retries', 'deferred'],
  m3: ['fresh', 'retries', 'deferred'],
  m4: ['deferred'],
};
/** Of members of an earlier version; the processes are in another order than the members. */
const REPORTS = ['process-c', 'process-a', 'process-b', ''];

async function byKafkajs(sharing?: Sharing, reports = REPORTS): Promise<Record<string, unknown>> {
  const findTopicPartitionMetadata = (topic: string): { partitionId: number }[] =>
    Array.from({ length: PARTITIONS[topic] ?? 0 }, (_, partitionId) => ({ partitionId }));
  // Only these members of what kafkajs passes to an assigner are used.
  const given = { cluster: { findTopicPartitionMetadata } } as unknown as AssignerConfig;
  const assigner = createCoPartitionAssigner(() => Buffer.alloc(0), sharing)(given);
  const members = Object.entries(MEMBERS).map(([memberId, topics], n) => ({
    memberId,
    memberMetadata: MemberMetadata.encode({
      version: 0,
      topics,
      userData: Buffer.from(reports[n] ?? ''),
    }),
  }));
  const result = await assigner.assign({ members, topics: Object.keys(PARTITIONS) });
  return Object.fromEntries(
    result.map(({ memberId, memberAssignment }) => [
      memberId,
      MemberAssignment.decode(memberAssignment)?.assignment,
    ]),
  );
}

function byPlatformatic(sharing?: Sharing, reports = REPORTS): Record<string, unknown> {
  const members = Object.entries(MEMBERS).map(
    ([memberId, topics], n): [string, ExtendedGroupProtocolSubscription] => [
      memberId,
      { memberId, version: 0, topics, metadata: Buffer.from(reports[n] ?? '') },
    ],
  );
  const topics = Object.entries(PARTITIONS).map(([name, partitionsCount]) => [
    name,
    { partitionsCount },
  ]);
  const metadata = { topics: new Map(topics as []) } as unknown as ClusterMetadata;
  const result = createAssigner(sharing)('m1', new Map(members), new Set(), metadata);
  return Object.fromEntries(
    result.map(({ memberId, assignments }) => [
      memberId,
      Object.fromEntries([...assignments.values()].map((each) => [each.topic, each.partitions])),
    ]),
  );
}

describe('the assignment of each member', () => {
  test('is the same whichever client leads the group', async () => {
    expect(byPlatformatic()).toEqual(await byKafkajs());
    expect(byPlatformatic()).toMatchObject({ m2: { fresh: [0, 3, 6, 9], retries: [0, 3, 6, 9] } });
    const reporting = ['process-c 7,2', 'process-a ', 'process-b 11,10,1', 'process-d '];
    expect(byPlatformatic({ kind: 'together' }, reporting)).toEqual(
      await byKafkajs({ kind: 'together' }, reporting),
    );
    expect(byPlatformatic({ kind: 'together' }, reporting)).toMatchObject({
      m1: { fresh: [7, 2, 4, 6], retries: [7, 2, 4, 6] },
      m2: { fresh: [0, 5, 8, 9], deferred: [0, 3] },
    });
    const evenly: Sharing = { kind: 'evenly', after: 1 };
    expect(byPlatformatic(evenly)).toEqual(await byKafkajs(evenly));
    expect(byPlatformatic(evenly)).not.toEqual(byPlatformatic());
  });
});
