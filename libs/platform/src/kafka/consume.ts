import type { ContiguousOffsets } from '@posthorn/domain/contiguous-offsets.ts';
import type { Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { keepTrying } from '../keep-trying.ts';
import type { Logger } from '../logger.ts';
import { startCommits } from './commit-offsets.ts';
import { coPartitionAssigner } from './co-partition-assigner.ts';
import type { KafkaMetrics } from './kafka-metrics.ts';
import { createPartitionWindow, type PartitionWindow } from './partition-window.ts';
import { createPauses, type Pauses } from './pauses.ts';
import type { ConsumeOptions, Consumption, LogRecord } from './record-log.ts';

export interface ConsumeDeps {
  kafka: Kafka;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}

const DRAIN_CHECK_MS = 20;
/** One stuck record holds the commit of its partition back; this bounds what a crash would repeat. */
const MAX_HELD = 5_000;

interface Intake extends ConsumeOptions {
  consumer: Consumer;
  offsets: PartitionWindow;
  pauses: Pauses;
  logger: Logger;
  metrics: KafkaMetrics;
  state: {
    isRunning: boolean;
    draining: AbortController;
    memberId: string;
  };
}

/** Reads the topics as one group member until stopped. The fetch loop only hands records over. */
export async function consume(deps: ConsumeDeps, options: ConsumeOptions): Promise<Consumption> {
  const consumer = createConsumer(deps.kafka, options.groupId);
  const intake: Intake = {
    ...options,
    consumer,
    offsets: createPartitionWindow(),
    pauses: createPauses(consumer),
    logger: deps.logger.child({ groupId: options.groupId }),
    metrics: deps.metrics,
    state: { isRunning: false, draining: new AbortController(), memberId: '' },
  };
  // Every record that is being tried again listens to it.
  setMaxListeners(0, intake.state.draining.signal);
  followMembership(intake, deps.onFatal);
  await consumer.connect();
  await consumer.subscribe({ topics: [...options.topics], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    // Offsets are resolved one by one, so that a postponed record is fetched again.
    eachBatchAutoResolve: false,
    eachBatch: (payload) => {
      takeBatch(intake, payload);
      return Promise.resolve();
    },
  });
  const commits = startCommits(intake);
  return {
    isRunning: () => intake.state.isRunning,
    stop: async (drainMs) => {
      await drain(intake, drainMs);
      await commits.stop();
      intake.pauses.close();
      await consumer.disconnect();
    },
  };
}

function createConsumer(kafka: Kafka, groupId: string): Consumer {
  return kafka.consumer({
    groupId,
    partitionAssigners: [coPartitionAssigner],
    // How long the partitions of a member that died stay idle. Heartbeats come from the fetch loop,
    // which only hands records over, so ten seconds are ample for a live one.
    sessionTimeout: 10_000,
    heartbeatInterval: 1_500,
    rebalanceTimeout: 10_000,
    maxBytesPerPartition: 262_144,
    minBytes: 1,
    // Bounds how long a resumed partition waits for its first fetch; 5,000 is the default.
    maxWaitTimeInMs: 100,
    // The counter of the fetch loop never resets, so a small number would end a healthy consumer.
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 1_000_000 },
  });
}

function followMembership(intake: Intake, onFatal: (reason: string) => void): void {
  const { consumer, offsets, pauses, state, metrics } = intake;
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    metrics.rebalances.inc();
    // Another member id means we were out of the group and others may have committed since.
    if (payload.memberId !== state.memberId) offsets.doubtAll();
    offsets.keepOnly(payload.memberAssignment);
    pauses.forgetAll();
    state.memberId = payload.memberId;
    state.isRunning = true;
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    state.isRunning = false;
    if (payload.restart) metrics.restarts.inc();
    else onFatal(`the consumer of ${intake.groupId} stopped: ${payload.error.message}`);
  });
}

/** Never throws: a TypeError here would end the consumer while the process lives on. */
function takeBatch(intake: Intake, payload: EachBatchPayload): void {
  const { topic, partition, messages, highWatermark } = payload.batch;
  const first = messages[0];
  if (!first) return;
  const offsets = intake.offsets.arrive(topic, partition, Number(first.offset));
  for (const message of messages) {
    if (intake.state.draining.signal.aborted || payload.isStale()) return;
    if (isFull(intake, offsets)) {
      intake.pauses.holdBack(topic, partition);
      break;
    }
    const record = toRecord(topic, partition, message);
    const postponeMs = intake.postponeMs?.(record) ?? 0;
    if (postponeMs > 0) {
      intake.pauses.pauseFor(topic, partition, postponeMs);
      return;
    }
    if (offsets.begin(record.offset)) void work(intake, record, offsets);
    payload.resolveOffset(message.offset);
  }
  intake.metrics.consumed.inc({ topic }, messages.length);
  const done = offsets.committable() ?? Number(first.offset);
  intake.metrics.setLag(topic, partition, Number(highWatermark) - done);
}

function isFull({ offsets, window }: Intake, ofPartition: ContiguousOffsets): boolean {
  return offsets.inFlight() >= window.high || ofPartition.held() >= MAX_HELD;
}

/**
 * What rejects is a fault of ours, so it is tried again until it succeeds; a record is given up only
 * at a stop, uncommitted, and read again after the next start.
 */
async function work(intake: Intake, record: LogRecord, offsets: ContiguousOffsets): Promise<void> {
  const { topic, partition, offset } = record;
  const { signal } = intake.state.draining;
  const onFailure = (error: unknown): void => {
    intake.logger.error({ err: error, topic, partition, offset }, 'record failed, trying again');
  };
  try {
    await keepTrying(() => intake.handle(record), { signal, onFailure });
    offsets.finish(offset);
  } catch {
    offsets.abandon(offset);
  }
  goOn(intake);
}

/** Reads on where the window has room again. */
function goOn({ offsets, pauses, window }: Intake): void {
  if (offsets.inFlight() > window.low) return;
  pauses.letGo(({ topic, partition }) => offsets.heldIn(topic, partition) < MAX_HELD / 2);
}

async function drain(intake: Intake, drainMs: number): Promise<void> {
  intake.state.draining.abort();
  intake.pauses.pauseAll(intake.topics);
  const deadlineMs = Date.now() + drainMs;
  while (intake.offsets.inFlight() > 0 && Date.now() < deadlineMs) await wait(DRAIN_CHECK_MS);
}

function toRecord(topic: string, partition: number, message: KafkaMessage): LogRecord {
  return {
    topic,
    partition,
    offset: Number(message.offset),
    key: message.key?.toString() ?? '',
    value: message.value ?? Buffer.alloc(0),
    headers: Object.fromEntries(
      Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  };
}
