import { describe, expect, test } from '@jest/globals';
import type { ClusterMetadata, ExtendedGroupProtocolSubscription } from '@platformatic/kafka';
import kafkajs from 'kafkajs';
import { createCoPartitionAssigner } from '../kafkajs/co-partition-assigner.ts';
import type { Sharing } from '../record-log.ts';
import { createAssigner } from './assigner.ts';

type AssignerConfig = Parameters<ReturnType<typeof createCoPartitionAssigner>>[0];

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
const PARTITIONS: Record<string, number> = { fresh: 12, retries: 12, deferred: 4 };

/** memberId → process and topics; the processes in another order than the members. */
const MEMBERS: Record<string, { instanceId: string; topics: string[] }> = {
  m1: { instanceId: 'process-c', topics: ['fresh', 'retries'] },
  m2: { instanceId: 'process-a', topics: ['fresh', 'retries', 'deferred'] },
  m3: { instanceId: 'process-b', topics: ['fresh', 'retries', 'deferred'] },
  m4: { instanceId: '', topics: ['deferred'] },
};

async function byKafkajs(sharing?: Sharing): Promise<Record<string, unknown>> {
  const findTopicPartitionMetadata = (topic: string): { partitionId: number }[] =>
    Array.from({ length: PARTITIONS[topic] ?? 0 }, (_, partitionId) => ({ partitionId }));
  // Only these members of what kafkajs passes to an assigner are used.
  const given = { cluster: { findTopicPartitionMetadata } } as unknown as AssignerConfig;
  const assigner = createCoPartitionAssigner('leader', sharing)(given);
  const members = Object.entries(MEMBERS).map(([memberId, { instanceId, topics }]) => ({
    memberId,
    memberMetadata: MemberMetadata.encode({
      version: 0,
      topics,
      userData: Buffer.from(instanceId),
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

function byPlatformatic(sharing?: Sharing): Record<string, unknown> {
  const members = Object.entries(MEMBERS).map(
    ([memberId, { instanceId, topics }]): [string, ExtendedGroupProtocolSubscription] => [
      memberId,
      { memberId, version: 0, topics, metadata: Buffer.from(instanceId) },
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
    const evenly: Sharing = { kind: 'evenly', after: 1 };
    expect(byPlatformatic(evenly)).toEqual(await byKafkajs(evenly));
    expect(byPlatformatic(evenly)).not.toEqual(byPlatformatic());
  });
});
