import { describe, expect, test } from '@jest/globals';
import kafkajs from 'kafkajs';
import { createCoPartitionAssigner } from './partition-assignment.ts';

type AssignerConfig = Parameters<ReturnType<typeof createCoPartitionAssigner>>[0];

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
const EXISTING = ['retry.5s', 'retry.1m'];
const PARTITIONS = [{ partitionId: 0 }, { partitionId: 1 }];

/** What Kafka answers for a topic that exists; every other one is unknown to it. */
function askBroker(topics: string[]) {
  if (topics.every((topic) => EXISTING.includes(topic))) {
    return Promise.resolve({
      topicMetadata: topics.map((topic) => ({ topic, partitionMetadata: PARTITIONS })),
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
    findTopicPartitionMetadata: (topic: string) => (topic === 'retry.5s' ? PARTITIONS : []),
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
  test('gives it to the members that do', async () => {
    expect(await assignmentOf(['retry.1m'])).toEqual({
      new: { 'retry.5s': [0], 'retry.1m': [0, 1] },
      old: { 'retry.5s': [1] },
    });
  });

  test('gives what exists to its members when another topic does not exist', async () => {
    expect(await assignmentOf(['retry.9h', 'retry.1m'])).toEqual({
      new: { 'retry.5s': [0], 'retry.1m': [0, 1] },
      old: { 'retry.5s': [1] },
    });
  });

  test('does not come about while Kafka cannot be asked: the join is repeated', async () => {
    const away = (): Promise<never> => Promise.reject(new Error('connection closed'));
    await expect(assignmentOf(['retry.1m'], away)).rejects.toThrow('connection closed');
  });
});
