import kafkajs, {
  type Consumer,
  type EachBatchPayload,
  type Kafka,
  type OffsetsByTopicPartition,
} from 'kafkajs';
import { createCoPartitionAssigner } from './co-partition-assigner.ts';
import type { GroupClient, GroupEvents } from '../consumer/group-client.ts';
import {
  HEARTBEAT_EVERY_MS,
  REBALANCE_TIMEOUT_MS,
  SESSION_TIMEOUT_MS,
} from '../consumer/group-timing.ts';
import type { Commit } from '../offsets/owned-partitions.ts';
import type { ConsumeOptions } from '../record-log.ts';

/** Opens a member of a group on kafkajs. */
export function openKafkajsGroupClient(
  kafka: Kafka,
  instanceId: string,
  options: ConsumeOptions,
  events: GroupEvents,
): GroupClient {
  let hasLeft = false;
  /** Resolves when the first join has ended. */
  let started: Promise<void> | null = null;
  const consumer = createConsumer(kafka, instanceId, options, () => !hasLeft);
  follow(consumer, events, () => hasLeft && started === null);
  const start = async (): Promise<void> => {
    await consumer.connect();
    await consumer.subscribe({ topics: [...options.topics], fromBeginning: true });
    if (!hasLeft) await run(consumer, events);
  };
  return {
    start() {
      started = start().finally(() => (started = null));
      return started;
    },
    async leave() {
      hasLeft = true;
      // While it joins, kafkajs drops its connection without leaving the group, which waits for the member
      // until its session times out: with two groups, deliveries stood still for 20 s.
      await started?.catch(() => undefined);
      await consumer.disconnect();
    },
    pause: (selection) => {
      consumer.pause(selection);
    },
    resume: (selection) => {
      consumer.resume(selection);
    },
    paused: () => consumer.paused(),
  };
}

function createConsumer(
  kafka: Kafka,
  instanceId: string,
  { groupId, maxWaitMs = 100 }: ConsumeOptions,
  mayRestart: () => boolean,
): Consumer {
  return kafka.consumer({
    groupId,
    // A broker may create what is asked for, with one partition: a topic that was deleted, for one.
    allowAutoTopicCreation: false,
    partitionAssigners: [createCoPartitionAssigner(instanceId)],
    // Heartbeats come from the fetch loop, which only hands records over.
    sessionTimeout: SESSION_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_EVERY_MS,
    rebalanceTimeout: REBALANCE_TIMEOUT_MS,
    maxBytesPerPartition: 262_144,
    minBytes: 1,
    maxWaitTimeInMs: maxWaitMs,
    retry: {
      initialRetryTime: 100,
      maxRetryTime: 1_000,
      // The counter of the fetch loop is never reset, so a small number would end a healthy consumer.
      retries: 1_000_000,
      restartOnFailure: () => Promise.resolve(mayRestart()),
    },
  });
}

function follow(consumer: Consumer, events: GroupEvents, isGone: () => boolean): void {
  consumer.on(consumer.events.FETCH_START, events.onFetch);
  consumer.on(consumer.events.REBALANCING, events.onRebalancing);
  consumer.on(consumer.events.HEARTBEAT, events.onConfirmed);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // kafkajs cannot cancel a join; this ends one of a restart that completes after the consumer has left.
    if (isGone()) throw new kafkajs.KafkaJSNonRetriableError('joined after it had left');
    events.onJoined(payload.memberAssignment);
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (payload.restart) events.onLost();
    else events.onFatal(payload.error);
  });
}

function run(consumer: Consumer, events: GroupEvents): Promise<void> {
  return consumer.run({
    autoCommit: false,
    // Offsets are resolved one by one, so that a record that is not due is fetched again.
    eachBatchAutoResolve: false,
    eachBatch: async (payload) => {
      // Also first, and not only behind it: a process that was suspended, or cut off, reads what others
      // have done meanwhile, and learns only from a heartbeat that it has lost its partitions.
      await payload.heartbeat();
      events.onBatch(payload, (commits) => commit(payload, commits));
    },
  });
}

/**
 * consumer.commitOffsets retries with the generation after a rebalance, and so commits partitions that
 * belong to another member by then. This commit is refused instead, and the next one is right.
 */
function commit(payload: EachBatchPayload, commits: readonly Commit[]): Promise<void> {
  return payload.commitOffsetsIfNecessary({ topics: byTopic(commits) });
}

function byTopic(commits: readonly Commit[]): OffsetsByTopicPartition['topics'] {
  const grouped = new Map<string, OffsetsByTopicPartition['topics'][number]>();
  for (const { topic, partition, offset } of commits) {
    const ofTopic = grouped.get(topic) ?? { topic, partitions: [] };
    ofTopic.partitions.push({ partition, offset: String(offset) });
    grouped.set(topic, ofTopic);
  }
  return [...grouped.values()];
}
