import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import type { ConsumeOptions } from '@posthorn/platform/kafka/record-log.ts';
import { BatchHandler } from '@posthorn/platform/kafka/consumer/batch-handler.ts';
import type { FetchedMessage } from '@posthorn/platform/kafka/consumer/group-client.ts';
import { setMaxListeners } from 'node:events';
import { Registry } from 'prom-client';
import { NOTHING_TO_AWAIT } from '../deterministic/event-queue.ts';
import type { SimulatedConsumer, ConsumerOptions } from './consumer-state.ts';
import { joinGroup, removeCrashedMember, rebalance } from './rebalance.ts';
import { keepTrying, LOGGER } from '../world/silent-logger.ts';
import { scheduleCommit } from './commit-offsets.ts';
import {
  keyOf,
  type Group,
  type GroupMember,
  type TopicPartition,
  type SimulatedKafka,
  type StoredRecord,
} from '../infrastructure/simulated-kafka.ts';
import { createPausableConsumer } from './pause-partitions.ts';
import type { World } from '../world/world.ts';

const METRICS = createKafkaMetrics(new Registry(), () => 0);
const MAX_BATCH = 12;
const MAX_FETCH_MS = 200;

/** Joins a group and consumes, with the real offset tracking, pausing and batch handling. */
export function startConsumer(world: World, kafka: SimulatedKafka, options: ConsumerOptions): void {
  const group = kafka.group(options.groupId);
  for (const topic of options.topics) group.topics.add(topic);
  const consumer = createConsumer(world, kafka, group, options);
  const member: GroupMember = {
    onAssigned: (generation, assigned) => {
      applyAssignment(consumer, generation, assigned);
    },
    onNewRecords: (topicPartition) => {
      fetch(consumer, topicPartition);
    },
  };
  options.process.onCrash(() => {
    options.observer.onInterrupted([...consumer.uncommittedRecords.values()].flat());
    consumer.batches.close();
    removeCrashedMember(world, kafka, group, member);
  });
  options.process.onRebalance(() => {
    if (world.random.bool(0.5)) rebalance(world, kafka, group);
  });
  joinGroup(world, kafka, group, member);
}

function createConsumer(
  world: World,
  kafka: SimulatedKafka,
  group: Group,
  options: ConsumerOptions,
): SimulatedConsumer {
  const stopping = new AbortController().signal;
  setMaxListeners(0, stopping);
  const paused = new Set<string>();
  const client = createPausableConsumer(paused, (topicPartition) => {
    fetch(consumer, topicPartition);
  });
  const handle: ConsumeOptions['handle'] = (...given) => handleOne(consumer, ...given);
  const { nowMs } = options.process;
  const batches = new BatchHandler(
    { ...options, handle },
    { client, keepTrying, stopping, nowMs, logger: LOGGER, metrics: METRICS },
  );
  const consumer: SimulatedConsumer = {
    ...options,
    world,
    kafka,
    group,
    batches,
    paused,
    generation: 0,
    positions: new Map(),
    fetching: new Set(),
    uncommittedRecords: new Map(),
    isCommitting: false,
  };
  return consumer;
}

async function handleOne(
  consumer: SimulatedConsumer,
  ...[record, isOurs]: Parameters<ConsumeOptions['handle']>
): Promise<void> {
  const { observer, group, process, handle, uncommittedRecords } = consumer;
  const key = keyOf(record);
  uncommittedRecords.set(key, [...(uncommittedRecords.get(key) ?? []), record]);
  observer.onHandled(group, record, process);
  await handle(record, isOurs);
  observer.onDone(group, record);
  scheduleCommit(consumer);
}

/** Like `GroupConsumer` of the platform. */
function applyAssignment(
  consumer: SimulatedConsumer,
  generation: number,
  assigned: readonly TopicPartition[],
): void {
  const { batches, positions, group, process, uncommittedRecords } = consumer;
  if (!process.isAlive()) return;
  consumer.observer.onInterrupted([...uncommittedRecords.values()].flat());
  uncommittedRecords.clear();
  consumer.generation = generation;
  batches.assign(assignmentOf(assigned));
  positions.clear();
  for (const topicPartition of assigned) {
    positions.set(keyOf(topicPartition), group.committed.get(keyOf(topicPartition)) ?? 0);
  }
  for (const topicPartition of assigned) fetch(consumer, topicPartition);
}

function assignmentOf(assigned: readonly TopicPartition[]): Record<string, number[]> {
  const assignment: Record<string, number[]> = {};
  for (const { topic, partition } of assigned) (assignment[topic] ??= []).push(partition);
  return assignment;
}

/** Fetches a batch of random size. It arrives after some time, which may be after a rebalance. */
function fetch(consumer: SimulatedConsumer, topicPartition: TopicPartition): void {
  const { world, kafka, process, positions, paused, fetching } = consumer;
  const key = keyOf(topicPartition);
  const position = positions.get(key);
  if (position === undefined || paused.has(key) || fetching.has(key) || !process.isAlive()) return;
  const { records, endOffset } = kafka.partitionAt(topicPartition);
  const ahead = records.filter(({ offset }) => offset >= position);
  if (ahead.length === 0) return;
  const { time, random, plan } = world;
  const batch = ahead.slice(0, random.between(1, MAX_BATCH));
  fetching.add(key);
  time.after(random.between(1, Math.min(MAX_FETCH_MS, 2 * plan.latencyMs)), () => {
    fetching.delete(key);
    deliverBatch(consumer, topicPartition, { batch, endOffset });
    fetch(consumer, topicPartition);
    return positions.get(key) === position ? NOTHING_TO_AWAIT : undefined;
  });
}

function deliverBatch(
  consumer: SimulatedConsumer,
  topicPartition: TopicPartition,
  { batch, endOffset }: { batch: readonly StoredRecord[]; endOffset: number },
): void {
  const { positions, paused, process, world } = consumer;
  const key = keyOf(topicPartition);
  if (!process.isAlive() || !positions.has(key) || paused.has(key)) return;
  world.trace(
    process.name,
    `receives ${key} from ${batch[0]?.offset ?? '-'}, ${batch.length} records`,
  );
  const offsetAt = (index: number): string => String(batch.at(index)?.offset ?? 0);
  consumer.batches.handle({
    batch: {
      ...topicPartition,
      messages: batch.map(toMessage),
      highWatermark: String(endOffset),
      firstOffset: () => offsetAt(0),
      lastOffset: () => offsetAt(-1),
    },
    resolveOffset: (offset) => positions.set(key, Number(offset) + 1),
  });
  scheduleCommit(consumer);
}

function toMessage({ offset, key, value, headers }: StoredRecord): FetchedMessage {
  return { offset: String(offset), timestamp: '0', key: Buffer.from(key), value, headers };
}
