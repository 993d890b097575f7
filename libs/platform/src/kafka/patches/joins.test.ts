import { beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { delayJoin } from './joins.ts';
import { patchKafkajs } from './patch-kafkajs.ts';

const require = createRequire(import.meta.url);

interface Group {
  lastRequest: number;
  joinAndSync: () => Promise<void>;
  heartbeat: (options: { interval: number }) => Promise<void>;
}

const { MemberAssignment } = require('kafkajs/src/consumer/assignerProtocol.js') as {
  MemberAssignment: { encode: (assignment: object) => Buffer };
};

/** A coordinator of one group. It refuses joins or assignments as a test chooses. */
function createCoordinator() {
  const coordinator = {
    refused: null as 'join' | 'assignment' | null,
    heartbeats: 0,
    joins: 0,
    joinGroup() {
      coordinator.joins += 1;
      if (coordinator.refused === 'join') throw new Error('the connection was closed');
      const group = { generationId: 1, leaderId: 'other', memberId: 'me', members: [] };
      return Promise.resolve({ ...group, groupProtocol: 'any' });
    },
    syncGroup() {
      if (coordinator.refused === 'assignment') throw new Error('the connection was closed');
      const assignment = { version: 0, assignment: { orders: [0] }, userData: Buffer.alloc(0) };
      return Promise.resolve({ memberAssignment: MemberAssignment.encode(assignment) });
    },
    heartbeat() {
      coordinator.heartbeats += 1;
      return Promise.resolve();
    },
  };
  return coordinator;
}

/** The class that kafkajs itself uses. */
function createGroup(coordinator: ReturnType<typeof createCoordinator>): Group {
  const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup.js') as new (
    options: object,
  ) => Group;
  const ignore = (): undefined => undefined;
  const logger = { info: ignore, debug: ignore, warn: ignore, error: ignore };
  return new ConsumerGroup({
    groupId: 'test',
    topics: ['orders'],
    topicConfigurations: {},
    retry: { retries: 0 },
    assigners: [],
    logger: { ...logger, namespace: () => logger },
    instrumentationEmitter: { emit: ignore },
    cluster: {
      findGroupCoordinator: () => Promise.resolve(coordinator),
      findTopicPartitionMetadata: () => [{ partitionId: 0 }],
      committedOffsets: () => ({}),
    },
  });
}

describe('a consumer of kafkajs', () => {
  let coordinator: ReturnType<typeof createCoordinator>;
  let group: Group;
  const beat = (): Promise<void> => group.heartbeat({ interval: 0 });

  beforeEach(async () => {
    patchKafkajs();
    coordinator = createCoordinator();
    group = createGroup(coordinator);
    await group.joinAndSync();
  });

  it('sends heartbeats once it has joined', async () => {
    await beat();
    expect(coordinator.heartbeats).toBe(1);
  });

  it('sends the next heartbeat in time after the clock was set back', async () => {
    group.lastRequest = Date.now() + 3_600_000;
    await beat();
    expect(coordinator.heartbeats).toBe(1);
  });

  it.each(['join', 'assignment'] as const)(
    'has no heartbeat after it got no answer to its next %s, until it has joined again',
    async (refused) => {
      coordinator.refused = refused;
      await expect(group.joinAndSync()).rejects.toThrow('the connection was closed');
      await expect(beat()).rejects.toMatchObject({ type: 'REBALANCE_IN_PROGRESS' });
      expect(coordinator.heartbeats).toBe(0);
      coordinator.refused = null;
      await group.joinAndSync();
      await beat();
      expect(coordinator.heartbeats).toBe(1);
    },
  );

  it('has offsets of its own beside another one of the group', () => {
    const Cluster = require('kafkajs/src/cluster/index.js') as new (options: object) => {
      committedOffsets: (of: { groupId: string }) => object;
    };
    const logger = { namespace: () => logger };
    const options = { logger, offsets: new Map(), brokers: [], socketFactory: null };
    const [own, other] = [new Cluster(options), new Cluster(options)];
    const of = { groupId: 'test' };
    expect(own.committedOffsets(of)).not.toBe(other.committedOffsets(of));
  });

  it('waits once before its next join when that is to be delayed', async () => {
    let end: () => void = () => undefined;
    delayJoin('me', new Promise((resolve) => (end = resolve)));
    const joining = group.joinAndSync();
    await new Promise(setImmediate);
    expect(coordinator.joins).toBe(1);
    end();
    await joining;
    await group.joinAndSync();
    expect(coordinator.joins).toBe(3);
  });
});
