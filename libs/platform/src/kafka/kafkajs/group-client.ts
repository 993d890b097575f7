import kafkajs, {
  type Consumer,
  type EachBatchPayload,
  type Kafka,
  type OffsetsByTopicPartition,
} from 'kafkajs';
import { createCoPartitionAssigner } from './co-partition-assigner.ts';
import type { GroupClient, GroupEvents } from '../consumer/group-client.ts';
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
  const consumer = createConsumer(kafka, instanceId, options, () => !hasLeft);
  follow(consumer, events, () => hasLeft);
  return {
    async start() {
      await consumer.connect();
      await consumer.subscribe({ topics: [...options.topics], fromBeginning: true });
      if (hasLeft) return consumer.disconnect();
      await run(consumer, events);
    },
    leave() {
      hasLeft = true;
      return consumer.disconnect();
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
    partitionAssigners: [createCoPartitionAssigner(instanceId)],
    // How long the partitions of a member that died stay idle. Heartbeats come from the fetch loop,
    // which only hands records over, so ten seconds are ample for a live one.
    sessionTimeout: 10_000,
    heartbeatInterval: 1_500,
    rebalanceTimeout: 10_000,
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

function follow(consumer: Consumer, events: GroupEvents, hasLeft: () => boolean): void {
  consumer.on(consumer.events.FETCH_START, events.onFetch);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // kafkajs cannot cancel a join; this ends one that completes after the consumer has left.
    if (hasLeft()) throw new kafkajs.KafkaJSNonRetriableError('joined after it had left');
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
    eachBatch: (payload) => {
      events.onBatch(payload, (commits) => commit(payload, commits));
      return Promise.resolve();
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
