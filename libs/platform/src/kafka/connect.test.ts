import { afterEach, beforeEach, describe, expect, it, test } from '@jest/globals';
import { topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import { createRequire } from 'node:module';
import { StartupError } from '../service/errors.ts';
import { createLogger } from '../service/logger.ts';
import {
  assertCoPartitioned,
  assertTopicsExist,
  createKafkaClient,
  delayJoin,
  FetchPace,
  patchConsumerGroup,
  patchRequestQueue,
} from './connect.ts';

const require = createRequire(import.meta.url);

const names = topicNames('p.', [5_000], [1_000, 5_000]);
const all = topicSpecs(names).map(({ name }) => name);

const REMEDY = 'Run deploy/setup/add-partitions.ts as docs/partitions.md says.';

function refusalOf(existing: string[]): unknown {
  try {
    assertTopicsExist(names, new Map(existing.map((topic) => [topic, 12])));
    return null;
  } catch (error) {
    return error;
  }
}

describe('a start', () => {
  test('continues when every topic exists', () => {
    expect(refusalOf([...all, 'elsewhere'])).toBeNull();
  });

  test.each(all)('fails when %s does not exist, and names the command that creates it', (topic) => {
    const refusal = refusalOf(all.filter((name) => name !== topic));
    expect(refusal).toBeInstanceOf(StartupError);
    expect(refusal).toMatchObject({
      message:
        `Kafka has no topic ${topic}. Run deploy/setup/create-topics.ts ` +
        'with the same TOPIC_PREFIX, RETRY_DELAYS and DEFERRAL_DELAYS.',
    });
  });

  test('names every topic that an earlier version did not have', () => {
    const earlier = all.filter((name) => !name.startsWith('p.deferred.'));
    expect(String(refusalOf(earlier))).toContain('no topic p.deferred.1s, p.deferred.5s. Run');
  });
});

describe('a start with topics of different numbers of partitions', () => {
  const counts = (changed: Record<string, number> = {}): Map<string, number> =>
    new Map(all.map((topic) => [topic, changed[topic] ?? 12]));

  test('continues when only topics differ that are read on their own', () => {
    expect(() => {
      assertCoPartitioned(names, counts({ 'p.dead-letters': 1, 'p.retry.5s': 24 }));
    }).not.toThrow();
  });

  test.each(['p.message-created', 'p.retry-due', 'p.slow-lane'])(
    'fails when %s differs, and names the topics with their numbers',
    (topic) => {
      const existing = counts({ [topic]: 24 });
      const of = (name: string) => `${name} has ${existing.get(name) ?? 0}`;
      const found = [of('p.message-created'), of('p.retry-due'), of('p.slow-lane')].join(', ');
      const text = `These topics must have the same number of partitions: ${found}. `;
      expect(() => {
        assertCoPartitioned(names, existing);
      }).toThrow(new StartupError(`${text}${REMEDY}`));
    },
  );
});

interface Group {
  lastRequest: number;
  joinAndSync: () => Promise<void>;
  heartbeat: (options: { interval: number }) => Promise<void>;
}

const { MemberAssignment } = require('kafkajs/src/consumer/assignerProtocol.js') as {
  MemberAssignment: { encode: (assignment: object) => Buffer };
};

it('a client is created with every patch', () => {
  const consumerGroup = require('kafkajs/src/consumer/consumerGroup.js') as { prototype: Group };
  const requestQueue = require('kafkajs/src/network/requestQueue/index.js') as {
    prototype: { scheduleCheckPendingRequests: () => void };
  };
  const patched = (): unknown[] => [
    consumerGroup.prototype.heartbeat,
    requestQueue.prototype.scheduleCheckPendingRequests,
  ];
  const before = patched();
  createKafkaClient('test', { brokers: ['127.0.0.1:1'] }, createLogger('test', 'silent'));
  patched().forEach((each, n) => {
    expect(each).not.toBe(before[n]);
  });
});

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
    patchConsumerGroup();
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

it('a fetch after few records waits for more, and one after many or none does not', () => {
  const pace = new FetchPace();
  const restAfter = (records: number): number => {
    pace.answered(1, records, 1_000);
    return pace.restMs(1, 1_004);
  };
  expect([0, 1, 99, 100].map(restAfter)).toEqual([0, 6, 6, 0]);
  pace.answered(1, 1, 1_000);
  expect([pace.restMs(2, 1_000), pace.restMs(1, 1_011)]).toEqual([0, 0]);
});

interface Queue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null | undefined;
  checkPendingRequests: () => void;
  destroy: () => void;
}

/** The class that kafkajs itself uses. */
function createQueue(): Queue {
  const RequestQueue = require('kafkajs/src/network/requestQueue/index.js') as new (
    options: object,
  ) => Queue;
  return new RequestQueue({
    instrumentationEmitter: null,
    maxInFlightRequests: null,
    requestTimeout: 1_000,
    enforceRequestTimeout: false,
    clientId: 'test',
    broker: 'test:9092',
    logger: { debug: () => undefined },
  });
}

describe('the request queue of kafkajs', () => {
  let queue: Queue;

  beforeEach(() => {
    patchRequestQueue();
    queue = createQueue();
  });
  afterEach(() => {
    queue.destroy();
  });

  it('sets no timer while no request waits', () => {
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId ?? null).toBeNull();
  });

  it('checks again while a request waits for the end of a throttle', () => {
    queue.throttledUntil = Date.now() + 60_000;
    queue.pending.push({});
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).toBeTruthy();
  });
});
