import kafkajs, { type Consumer, type ConsumerCrashEvent, type Kafka } from 'kafkajs';
import type { Logger } from '../logger.ts';
import type { SendCommit } from './commit-offsets.ts';
import { createCoPartitionAssigner } from './co-partition-assigner.ts';
import type { KafkaMetrics } from './kafka-metrics.ts';
import type { PartitionWindow } from './partition-window.ts';
import type { Pauses } from './pauses.ts';
import type { ConsumeOptions } from './record-log.ts';

export interface ConsumeDeps {
  kafka: Kafka;
  /** Names this process; members of its groups are ordered by it. */
  instanceId: string;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}

/** What a consumer knows of its place in the group. */
export interface Membership {
  isRunning: boolean;
  /** True once it was stopped or given up; nothing of it counts any more. */
  isOver: boolean;
  assignment: Readonly<Record<string, number[]>>;
  sendCommit: SendCommit | null;
  /** How often the fetch loop has gone round. */
  fetches: number;
}

export interface Member {
  options: ConsumeOptions;
  consumer: Consumer;
  offsets: PartitionWindow;
  pauses: Pauses;
  metrics: KafkaMetrics;
  state: Membership;
}

export function createConsumer(
  { kafka, instanceId }: ConsumeDeps,
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
      // The counter of the fetch loop never resets, so a small number would end a healthy consumer.
      ...{ initialRetryTime: 100, maxRetryTime: 1_000, retries: 1_000_000 },
      restartOnFailure: () => Promise.resolve(mayRestart()),
    },
  });
}

export function followMembership(member: Member, onFatal: (reason: string) => void): void {
  const { consumer, offsets, pauses, state, metrics, options } = member;
  consumer.on(consumer.events.FETCH_START, () => {
    state.fetches += 1;
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // kafkajs cannot break off a join; this ends one that comes after the consumer was given up.
    if (state.isOver) throw new kafkajs.KafkaJSNonRetriableError('joined after the end');
    metrics.rebalances.inc();
    // Between two joins the group may have had an assignment that we never saw.
    offsets.doubtAll();
    offsets.keepOnly(payload.memberAssignment);
    metrics.keepLagOf(options.topics, payload.memberAssignment);
    pauses.forgetAll();
    state.assignment = payload.memberAssignment;
    state.isRunning = true;
    options.onAssigned?.();
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    crash(member, payload, onFatal);
  });
}

function crash(
  { state, metrics, options }: Member,
  { restart, error }: ConsumerCrashEvent['payload'],
  onFatal: (reason: string) => void,
): void {
  if (state.isOver) return;
  state.isRunning = false;
  state.sendCommit = null;
  if (restart) metrics.restarts.inc();
  else onFatal(`the consumer of ${options.groupId} stopped: ${error.message}`);
}
